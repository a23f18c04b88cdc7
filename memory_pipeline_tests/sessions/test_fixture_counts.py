"""The real sessions of ../shared/fixtures, counted independently of this code."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"

# Where our count of user messages differs on purpose: file -> (count, the line that settles it).
DIFFERENCES = {
    "pi/24-ang-earth-0__2026-06-12T05-41-41-570Z_019eba59-b43e-74ee-a57d-c5c7b7bed164.jsonl": (
        0,
        "line 4 is a skill block with no words after it",
    ),
    "pi/raquezha-pi.dev__full-2026-04-23-71c480.jsonl": (13, "line 85 is a skill block with no words after it"),
    "pi/raquezha-pi.dev__full-2026-04-23-c6cd04.jsonl": (4, "line 8 is a skill block with no words after it"),
    "claude/daaain-claude-code-log__edge_cases.jsonl": (4, "line 7: the arguments of a command are the user's words"),
    "claude/entireio-cli__full-2026-01-27-5f9972.jsonl": (26, "line 714 is 'Operation stopped by hook: …'"),
    "claude/entireio-cli__full-2026-02-03-c25d66.jsonl": (3, "line 6 is 'Operation stopped by hook: …'"),
    "gemini/entireio-cli__full-78762f-78762f.json": (1, "message 3 is 'System: Please continue.'"),
    "claude/jazzyalex-agent-sessions__small-2025-12-16-af5cd6.jsonl": (
        1,
        "the uuids of lines 49, 60, 62, 63 and 87 were all trimmed to the same text, which line 43 has already; "
        "line 39 is a queued prompt, which the other count does not know",
    ),
}


def sources() -> list[dict[str, str]]:
    table = FIXTURES / "SOURCES.tsv"
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


SOURCES = sources()
needs_fixtures = pytest.mark.skipif(not SOURCES, reason=f"the real sessions are not there: {FIXTURES}")


@needs_fixtures
def test_all_fixtures_are_there() -> None:
    assert len(SOURCES) == 70
    assert DIFFERENCES.keys() <= {row["file"] for row in SOURCES}


@needs_fixtures
@each("row", SOURCES, ids=lambda row: row["file"][-40:])
def test_fixture(row: dict[str, str]) -> None:
    session = parse_file(FIXTURES / row["file"])
    expected, reason = DIFFERENCES.get(row["file"], (int(row["user_messages"]), ""))
    assert sum(message.role == "user" for message in session.messages) == expected, reason
    check_contract(session)


def check_contract(session: ParsedSession) -> None:
    """What holds for every session, whatever is in it."""
    ids = [message.message_id for message in session.messages]
    assert len(ids) == len(set(ids))
    gone = [identifier for compaction in session.compactions for identifier in compaction.message_ids]
    assert len(gone) == len(set(gone))
    assert set(gone) <= set(ids)
    assert [message.said_at for message in session.messages] == sorted(message.said_at for message in session.messages)
    for message in session.messages:
        assert message.text.strip() and "\x00" not in message.text
        assert (message.tool_name is not None) == (message.role == "tool")
        assert message.role != "tool" or len(message.text) <= 1500
        assert message.said_at.utcoffset() == message.written_at.utcoffset() == session.messages[0].said_at.utcoffset()
    assert not set(session.files_read) & set(session.files_modified)
    assert len(session.name) <= 80 and "\n" not in session.name


LOGS = [row for row in SOURCES if row["file"].endswith(".jsonl")]


@needs_fixtures
@each("row", LOGS, ids=lambda row: row["file"][-40:])
def test_ids_do_not_depend_on_the_place_in_the_file(row: dict[str, str], tmp_path: Path) -> None:
    source = FIXTURES / row["file"]
    moved = tmp_path / source.name
    # a record of an unknown type before everything moves every line
    moved.write_bytes(b'{"type":"unknown"}\n\n' + source.read_bytes())
    before = [(message.message_id, message.role) for message in parse_file(source, tool_text_limit=400).messages]
    after = [(message.message_id, message.role) for message in parse_file(moved).messages]
    assert after == before


@needs_fixtures
def test_nobody_took_a_turn_back_in_the_fixtures() -> None:
    # the only branch point of a pi session has a prompt and an extension's note below it, and no two Claude prompts
    # follow one record; the rollbacks of FORMATS.md were in files that are not among the fixtures
    assert not [row["file"] for row in SOURCES if any(m.voided for m in parse_file(FIXTURES / row["file"]).messages)]


@needs_fixtures
def test_the_resumed_codex_session_inherits_all_of_its_copy_and_nothing_of_its_own() -> None:
    parent, resumed = (parse_file(path) for path in sorted((FIXTURES / "codex").glob("Hoper-J-*.jsonl")))
    assert (resumed.parent_id, parent.parent_id, parent.inherited) == (parent.session_id, "", frozenset())
    inherited = [message for message in resumed.messages if message.message_id in resumed.inherited]
    own = [message for message in resumed.messages if message.message_id not in resumed.inherited]
    # The copy ends with line 323, of 06:12:37; the next prompt was typed at 06:13:00. The last prompt of the parent was
    # interrupted at once, which is where the user went on in the second session: it is not in the copy.
    assert (len(parent.messages), len(inherited), len(own)) == (119, 118, 33)
    assert (max(m.line for m in inherited), min(m.line for m in own)) == (323, 325)
    told = Counter((message.role, message.text) for message in parent.messages)
    assert Counter((message.role, message.text) for message in inherited) <= told
    assert [message.role for message in own].count("user") == 8
    assert not {message.message_id for message in own} & {message.message_id for message in parent.messages}
