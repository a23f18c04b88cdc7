"""What the benchmark of other memory systems gives them, and how it counts what they find."""

import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.peers.basic_memory import BasicMemory
from benchmarks.peers.mempalace import MemPalace
from benchmarks.peers.ours import Ours
from benchmarks.peers.system import (
    Collection,
    Outcome,
    Ranking,
    ask,
    best_first,
    bytes_below,
    environment,
    said_at,
    with_speaker,
)
from benchmarks.recall_peers import Tally, quantile
from memory_pipeline_tests.cases import each

DIALOGUE = (
    {
        "id": "D1:1",
        "session": "D1",
        "said_at": "1:56 pm on 8 May, 2023",
        "speaker": "Caroline",
        "text": "I sold my bike.",
    },
    {"id": "D1:2", "session": "D1", "said_at": "1:56 pm on 8 May, 2023", "speaker": "Melanie", "text": "The red one?"},
)
CODING = (
    {"id": "S1#0", "session": "S1", "said_at": "2025-01-15", "speaker": "user", "text": "Cache it in Redis."},
    {"id": "S1#1", "session": "S1", "said_at": "2025-01-15", "speaker": "assistant", "text": "With a TTL of an hour."},
    {"id": "S2#0", "session": "S2", "said_at": "2025-01-16", "speaker": "user", "text": "Deploy on Tuesday."},
)
QUESTIONS = (
    {"query_id": "q1", "category": "one", "query": "Which cache?", "gold_sessions": ["S1"]},
    {"query_id": "q2", "category": "two", "query": "Cache and deploy?", "gold_sessions": ["S1", "S2"]},
)


def collection(messages: tuple[dict[str, str], ...]) -> Collection:
    return Collection("devmembench", "dev", messages, QUESTIONS)


def test_a_question_without_an_answer_counts_as_one_where_nothing_was_found() -> None:
    tally = Tally()
    found = Ranking("hybrid", "q2", ["S3", "S2", "S4", "S5", "S6", "S1"], 0.25)
    tally.add(collection(CODING), Outcome([found], indexing=2.0, index_bytes=3), "hybrid")
    assert tally.recalls == {1: [0.0, 0.0], 5: [0.0, 0.5], 10: [0.0, 1.0]}
    assert tally.by_category == {"one": [0.0], "two": [0.5]}
    assert (tally.seconds, tally.indexing, tally.index_bytes) == ([0.25], 2.0, 3)


def test_a_tally_counts_one_mode_only() -> None:
    tally = Tally()
    rankings = [Ranking("vector", "q1", ["S1"], 0.1), Ranking("union", "q1", ["S2"], 0.2)]
    tally.add(collection(CODING), Outcome(rankings), "vector")
    assert (tally.recalls[1], tally.seconds) == ([1.0, 0.0], [0.1])


def test_coding_sessions_reach_mempalace_as_transcripts_of_claude_code(tmp_path: Path) -> None:
    MemPalace._write(collection(CODING), tmp_path / "sessions")
    lines = [json.loads(line) for line in (tmp_path / "sessions/S1.jsonl").read_text("utf8").splitlines()]
    assert [line["type"] for line in lines] == ["user", "assistant"]
    assert lines[1]["message"] == {"role": "assistant", "content": "With a TTL of an hour."}
    assert lines[0]["timestamp"] == "2025-01-15T12:00:00Z"
    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == ["S1.jsonl", "S2.jsonl"]


def test_a_dialogue_of_two_people_reaches_mempalace_as_an_export_of_slack(tmp_path: Path) -> None:
    MemPalace._write(collection(DIALOGUE), tmp_path / "sessions")
    said = json.loads((tmp_path / "sessions/D1.json").read_text("utf8"))
    assert [(each["type"], each["user"], each["text"]) for each in said] == [
        ("message", "Caroline", "I sold my bike."),
        ("message", "Melanie", "The red one?"),
    ]


def test_sessions_reach_basic_memory_as_an_export_of_conversations(tmp_path: Path) -> None:
    BasicMemory._write(collection(CODING), tmp_path / "conversations.json")
    conversations = json.loads((tmp_path / "conversations.json").read_text("utf8"))
    assert [each["name"] for each in conversations] == ["S1", "S2"]
    assert [said["sender"] for said in conversations[0]["chat_messages"]] == ["human", "assistant"]
    assert conversations[1]["created_at"] == "2025-01-16T12:00:00Z"


def test_sessions_reach_our_own_run_as_files_of_pi_with_who_said_it(tmp_path: Path) -> None:
    Ours._write(collection(DIALOGUE), tmp_path / "sessions")
    lines = [json.loads(line) for line in (tmp_path / "sessions/D1.jsonl").read_text("utf8").splitlines()]
    assert (lines[0]["type"], lines[0]["id"], lines[0]["timestamp"]) == ("session", "D1", "2023-05-08T13:56:00.000Z")
    said = [line["message"] for line in lines[1:]]
    assert [message["role"] for message in said] == ["user", "assistant"]
    assert [message["content"][0]["text"] for message in said] == ["Caroline: I sold my bike.", "Melanie: The red one?"]
    assert with_speaker(CODING[0]) == "Cache it in Redis."


@each(
    ("text", "moment"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56)),
        ("2025-01-15", datetime(2025, 1, 15, 12)),
        ("2025-01-15T00:00:00", datetime(2025, 1, 15)),
        ("2026-01-05T14:17:31+02:00", datetime(2026, 1, 5, 12, 17, 31)),
    ],
)
def test_times_of_all_corpora_are_read(text: str, moment: datetime) -> None:
    assert said_at(text) == moment


def test_a_script_of_a_peer_is_asked_in_a_process_without_this_machines_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "1")
    script = tmp_path / "ask.py"
    script.write_text(
        "import json, os, sys\n"
        "assert 'SECRET_OF_THIS_MACHINE' not in os.environ and os.environ['HF_HUB_OFFLINE'] == '1'\n"
        "print('a line that is no answer')\n"
        "row = {'mode': 'm', 'query_id': json.load(sys.stdin)['q'], 'sessions': ['b', 'a', 'b'], 'seconds': 1.5}\n"
        "print(json.dumps(row))\n",
        "utf8",
    )
    answers = list(ask(Path(sys.executable), script, {"q": "q7"}, environment(tmp_path / "home")))
    assert answers == [Ranking("m", "q7", ["b", "a"], 1.5)]


def test_a_script_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "ask.py"
    script.write_text("import sys; sys.exit('no such palace')", "utf8")
    with pytest.raises(RuntimeError, match="no such palace"):
        list(ask(Path(sys.executable), script, {}, environment(tmp_path / "home")))


def test_disk_counts_what_is_written_and_neither_links_nor_logs(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"12345")
    with (tmp_path / "reserved").open("wb") as file:
        file.truncate(100_000_000)
    (tmp_path / "a.log").write_bytes(b"1" * 1_000_000)
    (tmp_path / "model").symlink_to(tmp_path / "a.log")
    assert 5 <= bytes_below(tmp_path, (".log",)) < 1_000_000
    assert bytes_below(tmp_path) >= 1_000_000


def test_best_first_keeps_each_session_where_its_best_message_stands() -> None:
    assert best_first(["b", "a", "b", "c"]) == ["b", "a", "c"]
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.95) == 4.0
