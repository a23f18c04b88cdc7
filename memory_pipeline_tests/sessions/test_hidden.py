"""Characters that nobody sees are gone before a session is redacted and stored, and counted."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from memory_pipeline.defs.sessions import not_read
from memory_pipeline.harnesses.model import ParsedSession, source_of
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.reading import Readings
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import utc
from memory_pipeline_tests.harnesses import test_claude_code as claude
from memory_pipeline_tests.harnesses import test_codex as codex
from memory_pipeline_tests.harnesses import test_gemini as gemini
from memory_pipeline_tests.harnesses import test_opencode as opencode
from memory_pipeline_tests.harnesses import test_pi as pi
from memory_pipeline_tests.sessions.test_stage import build, rows

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "leak")
SPLIT = "ghp_" + "a1B2c3D4e5\u200b" * 4
SAID = f"the token is {SPLIT} here{TAGS}\u202e"


def of(harness: str, folder: Path) -> ParsedSession:
    """A session in which a user says this."""
    if harness == "pi":
        return pi.parse(folder, pi.entry(1, pi.said("user", SAID)))
    if harness == "claude_code":
        return claude.parse(folder, claude.record(1, "user", SAID))
    if harness == "codex":
        return codex.parse(folder, *codex.prompt(1, SAID))
    if harness == "gemini":
        return gemini.log(folder, gemini.said("u-1", "user", SAID))
    return opencode.read(opencode.database(folder, opencode.Talk().user(SAID)).parent)


@each("harness", ["pi", "claude_code", "codex", "gemini", "opencode"])
def test_a_secret_that_is_split_is_found(harness: str, tmp_path: Path) -> None:
    session = of(harness, tmp_path)
    (message,) = session.messages
    assert message.text.startswith("the token is [redacted:")
    assert message.text.endswith("] here")
    assert session.hidden_characters == 4 + len(TAGS) + 1
    assert SPLIT not in session.name and not set(session.name) & set(TAGS)


def test_they_are_counted_as_the_session_grows(tmp_path: Path) -> None:
    path, readings = tmp_path / "s-1.jsonl", Readings()
    lines = [json.dumps(claude.record(n, "user", f"wo\u200brd {n}")) + "\n" for n in (1, 2)]
    path.write_text(lines[0], encoding="utf-8")
    assert readings.read(source_of(path), 1500, Redactor(b"")).hidden_characters == 1
    path.write_text("".join(lines), encoding="utf-8")
    assert readings.read(source_of(path), 1500, Redactor(b"")).hidden_characters == 2


def test_what_is_stored_and_what_the_catalogue_says(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    words = [claude.record(1, "user", SAID), claude.record(2, "assistant", [claude.use("Bash", command="ls\u200b")])]
    claude.parse(folder, *words, claude.record(3, "user", [claude.result("a\u2066b")], cwd="/ho\u200bme"))
    day = date(2026, 5, 1)
    lake, _ = build(folder, days=(day,), now=utc("2026-06-01T09:00"))
    texts = rows(lake, "messages", "text", day=day)
    assert texts[1:] == ["Bash(command=ls)", "ab"]
    taken = 4 + len(TAGS) + 1 + 2
    assert lake.read("files")["hidden_characters"].to_list() == [taken]
    known = Catalogue(lake, load_settings())
    assert not_read(known, known.rows)["hidden_characters"] == taken
