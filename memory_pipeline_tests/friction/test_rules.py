"""Lines that agents are told to keep, and the day since which each is known."""

import os
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.rules import Rule, RuleBook, given_in, memory_lines, rules_in
from memory_pipeline.lake.store import Lake
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event, turns
from memory_pipeline_tests.lake.folders import FarFolder
from memory_pipeline_tests.rows import DAY, at, changed, day_after, put, read_from, workspace

TODAY = day_after(10)
UV_RULE, TABS = "Install packages with uv, never with pip.", "Indent code with tabs everywhere."


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return Workspace(*workspace(tmp_path / "workspace"))


def write(path: Path, text: str, day: date | None = DAY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if day:
        os.utime(path, (at(day=day).timestamp(),) * 2)
    return path


def known(opened: Workspace, today: date = TODAY) -> dict[str, date]:
    return {rule.text: rule.since for rule in RuleBook(opened, today).present.values()}


def test_lines_that_say_something_are_rules() -> None:
    text = (
        f"# Rules for the kiln project\n\n- {UV_RULE}\n* {TABS}\n\n<!-- Never read this comment aloud. -->\n"
        "- ~~Deploy from the laptop on fridays.~~\n- Yes.\n\n" + "- " + "word " * 200
    )
    assert list(rules_in(text)) == [UV_RULE, TABS]


@each("line", ["Installiere Pakete immer mit uv.", "Instala siempre los paquetes con uv.", UV_RULE])
def test_rules_are_in_any_language(line: str) -> None:
    assert list(rules_in(f"- {line}")) == [line]


def test_a_line_of_memory_is_known_since_its_date_or_since_the_file_was_written(opened: Workspace) -> None:
    write(opened.settings.memory_file, f"# Memory\n\n- (2025-02-16) {UV_RULE}\n- (2025-02-31) {TABS}\n- Never push.\n")
    found = known(opened)
    assert found[UV_RULE] == date(2025, 2, 16)
    assert DAY in found.values()  # the line whose date is none


def test_a_promoted_line_is_known_since_it_was_promoted(opened: Workspace) -> None:
    put(opened.lake, "events", {"day": day_after(-3), "kind": "promoted", "proposal_id": "p-1", "text": UV_RULE})
    write(opened.settings.memory_file, f"- {UV_RULE}\n- {TABS}\n", day=day_after(2))
    assert known(opened) == {UV_RULE: day_after(-3), TABS: day_after(2)}


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/CLAUDE.md"])
def test_the_files_of_a_sessions_folder_and_of_those_above_it_up_to_the_repository_are_read(
    opened: Workspace, tmp_path: Path, name: str
) -> None:
    repository = tmp_path / "src" / "kiln"
    (repository / ".git").mkdir(parents=True)
    write(repository / name, f"- {UV_RULE}\n")
    write(repository / "oven" / "AGENTS.md", f"- {TABS}\n", day=day_after(-1))
    write(tmp_path / "src" / "AGENTS.md", "- Never read what is above a repository.\n")
    read_from(opened.lake, "/sessions/x.jsonl", "kiln", str(repository / "oven"))
    assert known(opened) == {UV_RULE: DAY, TABS: day_after(-1)}


def test_of_a_lake_in_a_bucket_only_the_folders_of_sessions_that_are_read_here_count(tmp_path: Path) -> None:
    """On a server, the folder that a pushed session names is somebody else's."""
    write(tmp_path / "src" / "AGENTS.md", f"- {UV_RULE}\n")
    (tmp_path / "sessions").mkdir()
    settings, lake = workspace(tmp_path / "workspace", session_dirs=(tmp_path / "sessions",))
    read_from(lake, str(tmp_path / "sessions" / "x.jsonl"), "kiln", str(tmp_path / "src"))
    far = Lake(FarFolder(lake.root))
    assert known(Workspace(settings, far)) == known(Workspace(settings, lake)) == {UV_RULE: DAY}
    server = changed(settings, session_dirs=())
    assert known(Workspace(server, far)) == {}
    assert known(Workspace(server, lake)) == {UV_RULE: DAY}


def test_a_file_that_changed_later_than_today_is_of_today(opened: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", f"- {UV_RULE}\n", day=day_after(1_000))
    read_from(opened.lake, "/sessions/x.jsonl", "kiln", str(tmp_path))
    assert known(opened) == {UV_RULE: TODAY}


def test_what_cannot_be_read_has_no_rules(opened: Workspace, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    write(tmp_path / "CLAUDE.md", f"- {UV_RULE}\n" * 20_000)  # too long to be rules
    (tmp_path / "GEMINI.md").write_bytes(b"\xff\xfe- Never \x00 use pip for packages.\n")
    read_from(opened.lake, "/sessions/x.jsonl", "kiln", str(tmp_path))
    read_from(opened.lake, "/sessions/y.jsonl", "gone", "/nowhere/at/all", session="s2")
    read_from(opened.lake, "/sessions/z.jsonl", "here", "relative/folder", session="s3")
    assert all("packages" in text for text in known(opened))


def test_a_line_that_was_seen_keeps_its_day_when_its_file_changes(opened: Workspace) -> None:
    write(opened.settings.memory_file, f"- {UV_RULE}\n", day=DAY)
    RuleBook(opened, TODAY).remember()
    write(opened.settings.memory_file, f"- {UV_RULE}\n- {TABS}\n", day=day_after(5))
    assert known(opened) == {UV_RULE: DAY, TABS: day_after(5)}


def test_remembering_again_stores_nothing_twice(opened: Workspace) -> None:
    write(opened.settings.memory_file, f"- {UV_RULE}\n")
    for _ in range(2):
        book = RuleBook(opened, TODAY)
        book.remember()
        book.remember()
    assert opened.lake.read("watched_rules")["text"].to_list() == [UV_RULE]


def test_a_rule_that_leaves_its_file_changes_no_older_day_and_is_no_rule_any_more(opened: Workspace) -> None:
    write(opened.settings.memory_file, f"- {UV_RULE}\n- {TABS}\n")
    book = RuleBook(opened, TODAY)
    book.remember()
    before = book.fingerprint(day_after(1))
    write(opened.settings.memory_file, f"- {TABS}\n", day=day_after(5))
    later = RuleBook(opened, TODAY)
    assert later.fingerprint(day_after(1)) == before
    assert [rule.text for rule in later.before(day_after(1))] == [TABS]


def test_a_rule_changes_the_days_after_it_alone(opened: Workspace) -> None:
    before = [RuleBook(opened, TODAY).fingerprint(day_after(n)) for n in (0, 1)]
    write(opened.settings.memory_file, f"- {UV_RULE}\n")
    after = [RuleBook(opened, TODAY).fingerprint(day_after(n)) for n in (0, 1)]
    assert after[0] == before[0]
    assert after[1] != before[1]


@each(
    ("file", "cwd", "ago", "reaches"),
    [
        ("/src/kiln/AGENTS.md", "/src/kiln/oven", 0, True),
        ("/src/kiln/.claude/CLAUDE.md", "/src/kiln", 0, True),
        ("/src/kiln/AGENTS.md", "/src/kiln-2", 0, False),  # another folder
        ("/src/kiln/AGENTS.md", None, 0, False),
        ("/src/kiln/AGENTS.md", "/src/kiln", 5, False),  # the rule is from that day, or later
        ("/src/kiln/AGENTS.md", "/src/kiln", 6, False),
        ("MEMORY.md", None, 0, True),
    ],
)
def test_where_and_when_a_rule_holds(file: str, cwd: str | None, ago: int, reaches: bool) -> None:
    assert Rule(file, UV_RULE, day_after(-5)).reaches(event("no pip", "s1", ago=ago, cwd=cwd)) is reaches


@each(("project", "reaches"), [("kiln", True), ("cli", False), (None, True)])
def test_a_line_of_memory_for_one_project_holds_there(project: str | None, reaches: bool) -> None:
    rule = Rule("MEMORY.md", UV_RULE, day_after(-5), "kiln")
    assert rule.reaches(event("no pip", "s1", project=project)) is reaches


@each(
    ("text", "file"),
    [
        (f"# AGENTS.md instructions for /src/kiln\n\n<INSTRUCTIONS>\n- {UV_RULE}\n", "/src/kiln/AGENTS.md"),  # Codex
        (f"<INSTRUCTIONS>\n- {UV_RULE}\n</INSTRUCTIONS>", "/repo/AGENTS.md"),
        (f"# claudeMd\nCodebase instructions follow.\n- {UV_RULE}\n", "/repo/AGENTS.md"),  # Claude Code
    ],
)
def test_rules_that_a_harness_gave_its_agent_are_rules_since_that_day(text: str, file: str) -> None:
    found = list(given_in(Session(turns(f"injected: {text}"), "/repo")))
    assert (file, UV_RULE, DAY) in [(rule.file, rule.text, rule.since) for rule in found]
    assert list(given_in(Session(turns(f"user: {text}"), "/repo"))) == []  # somebody pasted it


def test_what_else_a_harness_puts_in_has_no_rules() -> None:
    assert list(given_in(Session(turns(f"injected: {UV_RULE}", "injected: " + "\x00‮" * 100_000), "/repo"))) == []


def test_the_project_of_a_line_is_that_of_the_note_behind_it() -> None:
    text = "- (2025-03-01) Always use pnpm, not npm. It is faster. (project: kiln) <!-- p-20250301-003 -->\n"
    assert {line.project for line in memory_lines(text, {})} == {"kiln"}
