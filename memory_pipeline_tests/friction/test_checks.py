"""The checks of rules in natural wordings: right, or none with a reason."""

from __future__ import annotations

import pytest

from memory_pipeline.friction.checks import ASKS, CONDITION, NOTHING_NAMED, UNCLEAR, check_for
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
        ("NEVER run `git push --force`. `--force-with-lease` is ok if you have to.", "`git push --force` is never run"),
        ("Always pass `--context staging` to `kubectl`. Mine is another.", "`kubectl` always has `--context staging`"),
        ("docker compose up always with -d, otherwise it hangs", "`docker compose up` always has `-d`"),
        ("Search with rg instead of grep -r, this repo is huge", "`grep -r` is never run; `rg` is"),
        (
            "Do not ever run terraform apply or terraform destroy.",
            "`terraform apply` or `terraform destroy` is never run",
        ),
        ("`git add .` and `git add -A` are banned here.", "`git add .` or `git add -A` is never run"),
        ("安装依赖一律用 `poetry add`,不要用 pip install。", "`pip install` is never run; `poetry add` is"),
        ("No edites los archivos `.env` ni `.env.local`; son míos.", "no tool edits `.env` or `.env.local`"),
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
        ("Use poetry for dependencies.", ASKS),
        ("Deploys go through staging first.", NOTHING_NAMED),
        ("Never run `scripts/deploy.sh`.", UNCLEAR),
        ("Never use `console.log`.", UNCLEAR),
        ("Open a PR instead of `git push` to main.", UNCLEAR),
        ("Never run `pytest` against the staging database.", UNCLEAR),
        ("Never run `rm`. Except in the build folder.", CONDITION),
        ("Nunca hagas `git push` a menos que yo te lo pida.", CONDITION),
        ("Don't call the `billing` service from `worker.py`.", UNCLEAR),
    ],
)
def test_a_rule_that_code_cannot_check_says_why(rule: str, reason: str) -> None:
    assert check_for(rule) == reason
