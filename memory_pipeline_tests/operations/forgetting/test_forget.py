"""What goes from the tables and what stays: whose words they are, what else carries a line, what is too much."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from memory_pipeline.friction.rules import RuleBook
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.llm.request import Answer
from memory_pipeline.operations.forgetting import forget as forgetting
from memory_pipeline.operations.forgetting.forget import forget, left, look, now_utc, unfinished
from memory_pipeline.operations.forgetting.request import CannotForgetError, ForgetRequest
from memory_pipeline.proposals.remembering import NotRememberedError, remember
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import (
    DAY,
    at,
    decision,
    observation,
    proposal,
    put,
    read_from,
    reflection,
    say,
    workspace,
)

RULE = "never feed the zebra after midnight"
OTHER = "the kiln stays below cone six"


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    """Two sessions that say the rule, of which the first also says something else."""
    made = Workspace(*workspace(tmp_path / "workspace"))
    lake = made.lake
    say(lake, "s1", f"user: {RULE}", f"user: {OTHER}")
    say(lake, "s2", f"user: {RULE}")
    put(lake, "observations", observation(RULE), observation(RULE, session="s2"))
    own = [{"message_id": f"s1-{DAY:%d}-09:00-1", "start": 0, "end": len(OTHER)}]
    put(lake, "observations", observation(OTHER, evidence=own))
    put(lake, "reflections", reflection(RULE), reflection(OTHER))
    twice = [{"message_id": f"{s}-{DAY:%d}-09:00-0", "start": 0, "end": len(RULE)} for s in ("s1", "s2")]
    put(
        lake, "proposals", proposal(1, RULE, evidence=twice, session_ids=["s1", "s2"]), proposal(2, OTHER, evidence=own)
    )
    for session in ("s1", "s2"):
        read_from(lake, f"/sessions/{session}.jsonl", "kiln", "/src/kiln", session)
    return made


def done(opened: Workspace, named: str, **more: Any) -> ForgetRequest:
    request, _ = look(opened.settings, named, **more)
    forget(opened.settings, request, now_utc())
    assert unfinished(opened.settings) is None
    assert left(opened.settings, request) == []
    return request


def texts(opened: Workspace, table: str) -> list[str]:
    return sorted(Lake(opened.lake.root).read(table)["text"].to_list())


def test_words_go_in_all_sessions_and_the_rest_stays(opened: Workspace) -> None:
    done(opened, "the ZEBRA")
    assert texts(opened, "messages") == ["never feed [forgotten] after midnight"] * 2 + [OTHER]
    assert texts(opened, "observations") == [OTHER]
    assert texts(opened, "reflections") == [OTHER]
    assert texts(opened, "proposals") == [OTHER]


def test_of_a_session_that_says_the_same_as_another_only_its_own_words_go(opened: Workspace) -> None:
    request = done(opened, "s1")
    assert request.files == {"/sessions/s1.jsonl"}
    assert texts(opened, "messages") == [RULE]
    assert texts(opened, "observations") == [RULE]
    assert texts(opened, "proposals") == [RULE]  # the other session carries it
    (row,) = Lake(opened.lake.root).read("proposals").to_dicts()
    assert [e["message_id"] for e in row["evidence"]] == [f"s2-{DAY:%d}-09:00-0"]
    assert row["session_ids"] == ["s2"]
    files = {row["path"]: row for row in Lake(opened.lake.root).read("files").to_dicts()}
    assert "forget" in files["/sessions/s1.jsonl"]["excluded"]
    assert files["/sessions/s1.jsonl"]["cwd"] is None
    assert files["/sessions/s2.jsonl"]["excluded"] is None


def test_a_proposal_goes_with_all_that_happened_to_it(opened: Workspace) -> None:
    put(opened.lake, "events", decision(f"p-{DAY:%Y%m%d}-001", text=f"{RULE}!"))
    reconcile(opened, at("18:00"))
    memory = opened.settings.memory_file
    assert RULE in memory.read_text("utf-8")
    memory.write_text(memory.read_text("utf-8") + "\n- a zebra of my own\n", "utf-8")
    before = look(opened.settings, f"p-{DAY:%Y%m%d}-001")[1]
    assert {one.place for one in before} >= {
        "messages",
        "observations",
        "proposals",
        "events",
        "MEMORY.md",
        "backups",
    }
    done(opened, f"p-{DAY:%Y%m%d}-001")
    lake = Lake(opened.lake.root)
    for table in ("proposals", "events"):
        assert f"p-{DAY:%Y%m%d}-001" not in lake.read(table)["proposal_id"].to_list(), table
    assert RULE not in memory.read_text("utf-8")
    assert "- a zebra of my own" in memory.read_text("utf-8")
    for path in opened.settings.workspace.rglob("*"):
        assert not path.is_file() or b"after midnight" not in path.read_bytes(), path


def test_evidence_moves_with_the_words_before_it(opened: Workspace) -> None:
    both = f"{RULE}. {OTHER}"
    say(opened.lake, "s3", f"user: {both}")
    span = {"message_id": f"s3-{DAY:%d}-09:00-0", "start": both.index(OTHER), "end": len(both)}
    put(opened.lake, "proposals", proposal(3, OTHER, evidence=[span]))
    done(opened, RULE)
    lake = Lake(opened.lake.root)
    (row,) = lake.read("proposals").filter(proposal_id=f"p-{DAY:%Y%m%d}-003").to_dicts()
    (text,) = lake.read("messages").filter(session_id="s3")["text"]
    assert text == f"[forgotten]. {OTHER}"
    (place,) = row["evidence"]
    assert text[place["start"] : place["end"]] == OTHER


def test_a_message_goes_as_a_whole(opened: Workspace) -> None:
    named = f"s1-{DAY:%d}-09:00-1"
    request = ForgetRequest("message", named, messages={named})
    from memory_pipeline.operations.forgetting.rows import find_rows

    list(find_rows(opened.lake, request))
    forget(opened.settings, request, now_utc())
    assert texts(opened, "messages") == [RULE, RULE]
    lake = Lake(opened.lake.root)
    assert lake.read("windows").filter(session_id="s1")["messages"].to_list() == [1]
    assert texts(opened, "proposals") == [RULE]


def test_it_is_not_remembered_again(opened: Workspace, tmp_path: Path) -> None:
    done(opened, RULE)
    with pytest.raises(NotRememberedError, match="forget"):
        remember(opened, f"By the way: {RULE.upper()}", now_utc())
    rules = tmp_path / "src" / "AGENTS.md"
    rules.parent.mkdir()
    rules.write_text(f"- {RULE}\n- {OTHER} always\n", "utf-8")
    read_from(opened.lake, "/sessions/x.jsonl", "kiln", str(rules.parent))
    book = RuleBook(opened, DAY)
    assert {rule.text for rule in book.present.values()} == {f"{OTHER} always"}


def test_an_answer_that_repeats_it_goes_and_others_stay(opened: Workspace) -> None:
    cache = AnswerCache(answers_dir(opened.settings))
    for key, text in (("a" * 64, f"<facts>\n* {RULE}\n</facts>"), ("b" * 64, OTHER)):
        cache.put(key, Answer(text, 1, 1, None, 0.1))
    done(opened, RULE)
    assert cache.get("a" * 64) is None
    assert cache.get("b" * 64) is not None


def test_a_hint_on_tool_calls_that_repeats_it_goes_and_others_stay(opened: Workspace) -> None:
    folder = opened.settings.workspace / "connections" / "actions"
    folder.mkdir(parents=True)
    for name, line in (("p-1.json", RULE), ("p-2.json", OTHER)):
        (folder / name).write_text(json.dumps({"rules": [{"line": line}], "before": [], "after": {}}))
    done(opened, RULE)
    assert [path.name for path in folder.iterdir()] == ["p-2.json"]


def test_databases_of_dagster_keep_their_rows(opened: Workspace) -> None:
    home = opened.settings.dagster_home
    home.mkdir(parents=True)
    with closing(sqlite3.connect(home / "runs.db")) as connection:
        connection.execute("CREATE TABLE event_logs (id INTEGER PRIMARY KEY, event TEXT)")
        event = '{"a": {"preview": "| x |\\n| never feed the \\\\_zebra after midnight |\\n| y |"}, "n": 1}'
        connection.execute("INSERT INTO event_logs (event) VALUES (?), ('{\"b\": 2}')", (event,))
        connection.commit()
    done(opened, RULE)
    with closing(sqlite3.connect(home / "runs.db")) as connection:
        rows = [row for (row,) in connection.execute("SELECT event FROM event_logs ORDER BY id")]
    assert rows == ['{"a": {"preview": "| x |\\n| [forgotten] |\\n| y |"}, "n": 1}', '{"b": 2}']
    assert b"zebra" not in (home / "runs.db").read_bytes()


def test_nobody_decides_or_remembers_while_tables_are_written(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    write = forgetting.clean_tables

    def looking(lake: Lake, request: ForgetRequest) -> None:
        for name in ("proposals.lock", "remembered.lock"):
            with pytest.raises(Timeout):
                FileLock(opened.settings.backups / name, timeout=0).acquire()
            seen.append(name)
        write(lake, request)

    monkeypatch.setattr(forgetting, "clean_tables", looking)
    done(opened, RULE)
    assert seen == ["proposals.lock", "remembered.lock"]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "Nothing to forget was given"),
        ("a b", "too short"),
        ("p-20990101-001", "no session, message or line"),
        ("o-0123456789ab", "no session, message or line"),
        ("853d452f-e539-478b-88ef-f3460b12ae6e", "no session, message or line"),
    ],
)
def test_what_is_not_known_or_too_short_is_refused(opened: Workspace, named: str, said: str) -> None:
    before = texts(opened, "messages")
    with pytest.raises(CannotForgetError, match=said):
        look(opened.settings, named)
    assert texts(opened, "messages") == before


def test_what_stands_nearly_everywhere_is_refused(opened: Workspace) -> None:
    say(opened.lake, "s9", *[f"user: message {n} of the zebra" for n in range(30)])
    with pytest.raises(CannotForgetError, match="too many to forget at once"):
        look(opened.settings, "zebra")
