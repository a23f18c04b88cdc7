"""The checks of rules in natural wordings: right, or none with a reason."""

from __future__ import annotations

import pytest

from memory_pipeline.actions.checks import CONDITION, NOTHING_NAMED, UNCLEAR, check_for
from memory_pipeline_tests.cases import each


@each(
    "rule, described",
    [
        ("Never run `git push --force` on this repository.", "`git push --force` is never run"),
        ("Don't use npm here, use pnpm.", "`npm` is never run; `pnpm` is"),
        ("Use `uv` instead of `pip`.", "`pip` is never run; `uv` is"),
        ("We use yarn, not npm.", "`npm` is never run; `yarn` is"),
        ("Use `rg` rather than `grep`.", "`grep` is never run; `rg` is"),
        ("Never edit `schema.sql` by hand.", "no tool edits `schema.sql`"),
        ("Do not touch anything under `generated/`.", "no tool edits `generated/`"),
        ("`package-lock.json` must never be edited.", "no tool edits `package-lock.json`"),
        ("`terraform apply` is forbidden.", "`terraform apply` is never run"),
        ("Avoid `sed -i`; edit files with the edit tool.", "`sed -i` is never run"),
        ("Always run `pytest` with `-x`.", "`pytest` always has `-x`"),
        ("Bitte nie `git push --force` verwenden.", "`git push --force` is never run"),
        ("Statt `npm` immer `pnpm` verwenden.", "`npm` is never run; `pnpm` is"),
        (
            "N'utilise jamais `docker-compose`, utilise `docker compose`.",
            "`docker-compose` is never run; `docker compose` is",
        ),
        ("Nunca edites `config/prod.yml`.", "no tool edits `config/prod.yml`"),
        ("不要使用 `npm`，请使用 `pnpm`。", "`npm` is never run; `pnpm` is"),
    ],
)
def test_an_explicit_rule_has_a_check(rule: str, described: str) -> None:
    assert str(check_for(rule)) == described


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Never run migrations with `alembic upgrade head` in production unless I say so.", CONDITION),
        ("Run `make fmt` before every commit.", CONDITION),
        ("No `rm -rf` outside the build folder.", CONDITION),
        ("Never commit directly to main.", NOTHING_NAMED),
        ("Never force-push.", NOTHING_NAMED),
        ("Use poetry for dependencies.", NOTHING_NAMED),
        ("Deploys go through staging first.", NOTHING_NAMED),
        ("Never run `pytest` against the staging database.", UNCLEAR),
        ("Don't call the `billing` service from `worker.py`.", UNCLEAR),
    ],
)
def test_a_rule_that_code_cannot_check_says_why(rule: str, reason: str) -> None:
    assert check_for(rule) == reason
