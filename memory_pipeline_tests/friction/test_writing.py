"""The text of a new pattern, written by a model and checked against what was said; a loopback server plays it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memory_pipeline.friction.patterns import AGENTS_FILE, HARD_RULES, MEMORY_FILE, RULE_VIOLATED, Pattern
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.friction.writing import checked
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.stages import fingerprint_of_day
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.friction.test_stage import UV, Work
from memory_pipeline_tests.llm.openai_server import Fail, openai_server
from memory_pipeline_tests.rows import DAY, bytes_of, changed, day_after
from memory_pipeline_tests.rows import workspace as new_workspace

EVENTS = (event("No, use uv, not pip.", "s1", project="kiln"), event("pip again? uv 0.9 please", "s2", project="kiln"))
RULE = Pattern(
    "repeated_correction",
    "Said again in 2 sessions: “No, use uv, not pip.”",
    MEMORY_FILE,
    EVENTS,
    adds="No, use uv, not pip. (project: kiln)",
    section=HARD_RULES,
    low_risk=True,
)
GOOD = "TITLE: Packages are installed with pip again\nLINE: Install packages with uv, not pip."


def test_a_good_text_takes_the_place_of_the_templates_and_keeps_the_note() -> None:
    made, why = checked(RULE, GOOD)
    assert made and why is None
    assert made.title == "Packages are installed with pip again"
    assert made.adds == "Install packages with uv, not pip. (project: kiln)"
    assert not made.low_risk  # what is applied without asking is in the user's own words


@each(
    ("text", "why"),
    [
        ("", "it has no title, or no line"),
        ("TITLE: pip is used", "it has no title, or no line"),
        ("LINE: Use uv, not pip.", "it has no title, or no line"),
        ("TITLE: pip\nLINE: Use uv 0.8, not pip.", "not in the session: 0.8"),
        ("TITLE: pip\nLINE: Use uv as in `pyproject.toml`, not pip.", "not in the session: pyproject.toml"),
        ("TITLE: pip in 14 sessions\nLINE: Use uv, not pip.", "not in the session: 14"),
        ("TITLE: pip\nLINE: Use uv, not pip, as Jonas wants.", "not in the session: Jonas"),
        ("TITLE: uv\nLINE: Use pip, not uv.", "it reverses the meaning"),
        (f"TITLE: pip\nLINE: {'Use uv, not pip. ' * 30}", "it is too long"),
        (f"TITLE: {'pip ' * 60}\nLINE: Use uv, not pip.", "it is too long"),
    ],
)
def test_a_text_that_invents_or_turns_round_is_refused(text: str, why: str) -> None:
    assert checked(RULE, text) == (None, why)


def test_what_a_template_or_a_place_names_may_be_named() -> None:
    made, _ = checked(RULE, "**Title:** pip though uv 0.9 is there\nLine: Use uv 0.9 in kiln, not pip.")
    assert made and made.adds == "Use uv 0.9 in kiln, not pip. (project: kiln)"


def test_a_rule_that_stands_keeps_its_words_and_a_change_without_a_line_is_written_as_such() -> None:
    broken = replace(RULE, kind=RULE_VIOLATED, target_file=AGENTS_FILE, adds="Use uv.", low_risk=False)
    made, _ = checked(broken, "TITLE: uv is still not used\nLINE: Never use pip.")
    assert made and (made.title, made.adds) == ("uv is still not used", "Use uv.")
    skill = Pattern("missing_skill", "Looked up: uv", ".agents/skills/uv/SKILL.md", EVENTS, note="write down uv")
    made, _ = checked(skill, "TITLE: How uv works is looked up\nLINE: Write down how uv is used.")
    assert made and made.change == ".agents/skills/uv/SKILL.md: Write down how uv is used."


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "played")


def work_with(folder: Path, url: str, **settings: object) -> Work:
    given = {"reflector_model": "openai:played", "reflector_base_url": url, "reflector_price": "1/1"} | settings
    made, lake = new_workspace(folder, **given)
    return Work(changed(made, friction_min_points=0), lake)


def test_a_new_pattern_is_written_once_and_kept_while_it_goes_on(tmp_path: Path) -> None:
    with openai_server(["AGAIN: 1, 2, 3", GOOD, "AGAIN: 1, 2, 3, 4"]) as server:
        work = work_with(tmp_path, server.url)
        work.correct(*UV)
        (row,) = work.run()
        assert (row["title"], row["written_by"]) == ("Packages are installed with pip again", "openai:played")
        assert row["adds"].startswith("Install packages with uv, not pip.") and row["adds"] in row["change"]
        assert row["template"].startswith("Said again in 3 sessions")
        asked = server.requests[-1]
        assert len(server.requests) == 2  # what belongs together, and its text
        assert all(text in asked.prompt for text in UV)
        work.correct("Again pip! Use uv, not pip.", until=day_after(1), kind="rule")
        (later,) = work.run(day_after(1))
        kept = ("pattern_id", "title", "adds", "change", "written_by", "template")
        assert {name: later[name] for name in kept} == {name: row[name] for name in kept}
        assert later["occurrences"] > row["occurrences"]
        before = bytes_of(tmp_path / "lake/friction_clusters")
        for day in (DAY, day_after(1)):
            fingerprint = {day: fingerprint_of_day(work.stage(), day)}
            frame = work.build(day).frames["friction_clusters"]
            work.lake.replace("friction_clusters", frame, [day], fingerprint)
        assert bytes_of(tmp_path / "lake/friction_clusters") == before
        assert len(server.requests) == 3  # the text was asked for once, and no day is asked about twice


def test_what_a_model_invents_leaves_the_templates_text_and_says_so(tmp_path: Path) -> None:
    with openai_server(["AGAIN: 1, 2, 3", "TITLE: pip\nLINE: Use `poetry add`, not pip."]) as server:
        work = work_with(tmp_path / "a", server.url)
        work.correct(*UV)
        assert work.build().notes["without_the_model"] == "1: not in the session: poetry add"
    without = Work(*_plain(tmp_path / "b"))
    without.correct(*UV)
    work.run()
    without.run()
    columns = list(TABLES["friction_clusters"].columns)
    assert columns[-2:] == ["written_by", "template"]
    both = [made.lake.read("friction_clusters").drop("low_risk") for made in (work, without)]
    assert both[0].equals(both[1])


def _plain(folder: Path) -> tuple[object, object]:
    settings, lake = new_workspace(folder)
    return changed(settings, friction_min_points=0), lake


@pytest.mark.slow
@each("status", [401, 500])
def test_a_model_that_does_not_answer_leaves_the_templates_text(tmp_path: Path, status: int) -> None:
    with openai_server(Fail(status)) as server:
        work = work_with(tmp_path, server.url, model_timeout=1)
        work.correct(*UV)
        work.fail("permission denied: /srv/a", "permission denied: /srv/b")
        built = work.build()
    rows = built.frames["friction_clusters"].to_dicts()
    assert len(rows) == 2 and all(row["written_by"] is None for row in rows)
    assert built.notes["without_the_model"].startswith("3: ")  # what belongs together, and two texts


def test_without_a_model_nothing_is_asked(tmp_path: Path) -> None:
    settings, lake = new_workspace(tmp_path)
    assert FrictionStage(Workspace(settings, lake)).build(DAY).notes.get("written_by_a_model") is None
