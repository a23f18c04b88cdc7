"""No file crashes a reader: sessions of every harness with anything wrong in them, and the files in `corpus/`.

`corpus/` was found by `benchmarks/fuzz.py` and replayed here; files with a telling name were bugs once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import thorough
from memory_pipeline_tests.harnesses.test_opencode import NOON, PNG, SCHEMA, Talk
from memory_pipeline_tests.sessions.fuzzing import (
    CORPUS,
    FOLDERS,
    check,
    check_folders,
    check_opencode,
    check_session,
    folder_of_checks,
    session_or_reason,
    temporary_folder,
)
from memory_pipeline_tests.sessions.test_golden import GOLDEN

HARNESSES = (
    *("pi", "claude_code", "codex", "gemini"),
    *("copilot", "antigravity", "qwen_code", "droid", "kimi_code", "kimi_cli"),
)
IDS = ("1", "2", "3", "4", "", "s")
"""So few that parents are missing, are their own children and have several."""
ID_FIELDS = frozenset(
    (
        *("id", "uuid", "parentId", "parentUuid", "logicalParentUuid", "fromId", "firstKeptEntryId", "leafUuid"),
        *("headUuid", "tailUuid", "sessionId", "agentId", "toolCallId", "tool_use_id", "call_id", "callID"),
        *("request_id", "tool_call_id", "branch", "$rewindTo", "parentID", "messageID", "partID", "tail_start_id"),
    )
)
TIMES = (
    *("2026-05-01T12:00:00Z", "2026-05-01T12:00:01Z", "2026-05-02T23:59:59.999Z", "2026-04-30T22:00:00+02:00"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2099-12-31T23:59:59Z", "2020-01-01T00:00:00+00:30"),
    *(1777636800000, 1777636800.5, -1, 0, 10**18, 10**30, 1e300, "yesterday", "", None, True, [], {}),
)
TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "\n",
        "<skill name='a'>b</skill> go",
        "<system-reminder>x",
        "<a>",
        "</a>",
        "<private>x",
    ),
    *("[image: image/png, line 1, number 1]", "[image: ", "DO NOT INDEX", "<command-args>x", "x" * 5000, "ä\u2028b"),
    *("password=hunter2hunter2", "## My request for Codex:", "# Context from my IDE setup", '{"output":"x"}', "{"),
    *("[Request interrupted by user]", "*** Begin Patch\n*** Add File: a\n", PNG, "a\udfffb", "image", "text"),
)
VALUES = (
    *(None, True, False, -1, 0, 1, 1.5, 1e300, 2**53, 2**63, 2**64, -(2**70), [], {}, [None], [[]], {"type": []}),
    *({"": ""}, {"type": "image"}, [{"type": "image"}] * 3, {"kind": "x"}, ["1", None, 2], {"text": 1}, {"id": "1"}),
    # put in for these in the text of the file, since Python writes neither
    *("@nested", "@digits"),
)
CELLS = ("", "{}", "[]", "null", '{"a', b"\xff\x00", 0, -(2**63), 2**63 - 1, 1.5, 1e300, "1", "ses_1", "{")
"""Put into a row of a database, whatever the type of the column."""
NESTED = ("[" * 40 + "]" * 40, '{"a":[' * 300 + "]}" * 300, "[" * 1200 + "]" * 1200, '{"a":' * 5000, "[" * 900)
STRAY = (
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b'"',
    b'{"type":',
    b"null\n",
    b"[1]\n",
    b"\r\n",
    b"7",
)


@cache
def templates(harness: str) -> list[Any]:
    """The records of the golden sessions of a harness."""
    found = []
    for path in sorted((GOLDEN / harness).glob("*.json*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            found += json.loads(text)["messages"]
        for line in text.splitlines() if path.suffix == ".jsonl" else ():
            with suppress(ValueError):  # some of them are damaged
                found.append(json.loads(line))
    return found


def headers(harness: str) -> list[Any]:
    """The records with which a golden session of a harness begins."""
    paths = sorted((GOLDEN / harness).glob("*.jsonl"))
    return [json.loads(path.read_text(encoding="utf-8").splitlines()[0]) for path in paths]


class Damage:
    """Makes plausible sessions and spoils them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def records(self, harness: str) -> list[Any]:
        chosen = [self.chance.choice(templates(harness)) for _ in range(self.chance.randint(1, 7))]
        if self.chance.random() < 0.8:
            chosen.insert(0, self.chance.choice(headers(harness)))
        return [self.changed(record) for record in chosen]

    def changed(self, record: Any) -> Any:
        """A copy, in which ids and times are others and up to three values anything."""
        copy = json.loads(json.dumps(record))
        places = list(_places(copy))
        for holder, key in places:
            if key in ID_FIELDS and self.chance.random() < 0.5:
                holder[key] = self.chance.choice(IDS)
            elif key in ("timestamp", "time", "created_at") and self.chance.random() < 0.3:
                holder[key] = self.chance.choice(TIMES)
        for _ in range(self.chance.choice((0, 0, 1, 1, 2, 3))):
            self._spoil(*self.chance.choice(places))
        return copy

    def _spoil(self, holder: Any, key: Any) -> None:
        kind = self.chance.random()
        if kind < 0.15 and isinstance(holder, dict):
            holder.pop(key, None)
        elif kind < 0.25 and isinstance(holder, list):
            holder.append(holder[key] if key < len(holder) else None)
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = self.chance.choice(self.chance.choice((VALUES, TEXTS, IDS, TIMES)))

    def lines(self, records: list[Any]) -> bytes:
        """The records as JSON lines, some glued, cut or with stray bytes."""
        texts = [self.text(record).encode("utf-8", "surrogatepass") + b"\n" for record in records]
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            place = self.chance.randrange(len(texts))
            kind = self.chance.randrange(5)
            if kind == 0:
                texts[place] = texts[place].rstrip(b"\n")
            elif kind == 1:
                texts[place] = texts[place][: self.chance.randint(0, len(texts[place]))]
            elif kind == 2:
                texts.insert(place, texts[self.chance.randrange(len(texts))])
            else:
                texts[place] = self.bytes(texts[place])
        return b"".join(texts)

    def bytes(self, data: bytes) -> bytes:
        """The bytes, with stray ones in some place."""
        place = self.chance.randint(0, len(data))
        return data[:place] + self.chance.choice(STRAY) + data[place + self.chance.choice((0, 1, 20)) :]

    def text(self, value: Any) -> str:
        """JSON, in which letters may be escaped or not, and what no Python value is written as."""
        text = json.dumps(value, ensure_ascii=self.chance.random() < 0.7)
        if '"@' in text:
            text = text.replace('"@nested"', self.chance.choice(NESTED)).replace('"@digits"', "9" * 5000)
        return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a value, at any depth, as what holds it and its key in that."""
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


def many(examples: int) -> settings:
    """The same examples in each run."""
    return settings(
        max_examples=thorough(examples / 100), derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )


chances = st.randoms(use_true_random=False)


@pytest.mark.parametrize("harness", HARNESSES)
@many(150)
@given(chance=chances)
def test_json_lines_with_anything_wrong_in_them(harness: str, chance: Random) -> None:
    damage = Damage(chance)
    check(damage.lines(damage.records(harness)), "rollout-1.jsonl")


@many(100)
@given(chance=chances)
def test_a_snapshot_of_gemini_with_anything_wrong_in_it(chance: Random) -> None:
    damage = Damage(chance)
    snapshot = {"sessionId": "s", "projectHash": "p", "messages": damage.records("gemini")}
    data = damage.text(snapshot if chance.random() < 0.5 else damage.changed(snapshot))
    raw = data.replace('"messages"', '\n"messages"').encode("utf-8", "surrogatepass")
    check(damage.bytes(raw) if chance.random() < 0.5 else raw, "session-1.json")


def variants(record: Any) -> Iterator[Any]:
    """Copies of a record, in each of which one part is of another kind."""
    for number, _ in enumerate(_places(record)):
        for value in ([], {}, 1, "", None, [[]], {"type": []}):
            copy = json.loads(json.dumps(record))
            holder, key = list(_places(copy))[number]
            holder[key] = value
            yield copy


@each("harness", HARNESSES)
def test_every_part_of_every_record_may_be_of_another_kind(harness: str) -> None:
    records = [variant for record in templates(harness) for variant in variants(record)]
    for number, record in enumerate(records):
        if "uuid" in record:
            record["uuid"] = str(number)  # a record of Claude Code that is there twice is not read again
    lines = [json.dumps(record) + "\n" for record in [*headers(harness), *records]]
    path = folder_of_checks() / "a.jsonl"
    path.write_text("".join(lines))
    session = session_or_reason(lambda: parse_file(path))
    assert isinstance(session, ParsedSession)
    check_session(session)


def test_every_part_of_every_file_of_opencode_may_be_of_another_kind() -> None:
    for folder in sorted((GOLDEN / "opencode").iterdir()):
        for file in sorted((folder / "storage").glob("*/*/*.json")) if folder.is_dir() else ():
            record = json.loads(file.read_bytes())
            files = [json.dumps(variant) for variant in variants(record)]
            first = '{"id":"ses_1","projectID":"p","time":{"created":1777636800000}}'
            if file.parts[-3] == "session":
                for changed in files:
                    check_folders(f'{changed}\n{{"role":"user"}}\n+{{"type":"text","text":"x"}}'.encode())
            elif file.parts[-3] == "message":
                parts = '+{"type":"text","text":"x"}\n+{"type":"compaction"}'
                check_folders("\n".join([first, *(f"{changed}\n{parts}" for changed in files)]).encode())
            else:
                for role in ("user", "assistant"):
                    message = json.dumps({"role": role, "time": {"created": NOON}})
                    check_folders("\n".join([first, message, *(f"+{changed}" for changed in files)]).encode())


@many(100)
@given(data=st.binary(max_size=300), suffix=st.sampled_from((".json", ".jsonl")))
def test_bytes_that_nobody_wrote(data: bytes, suffix: str) -> None:
    check(data, f"a{suffix}")
    check(b'{"type":"user","sessionId":"s","message":{"content":"hi"}}\n' + data, f"a{suffix}")


def talk(chance: Random) -> Talk:
    """A session of OpenCode with anything wrong in it."""
    damage = Damage(chance)
    call = {"type": "tool", "tool": "read", "callID": "c", "state": {"status": "completed", "input": {"filePath": "a"}}}
    picture = {"type": "file", "mime": "image/png", "url": PNG, "filename": "a.png"}
    call["state"] |= {"output": "x", "attachments": [picture], "time": {"start": NOON, "end": NOON + 5}}
    made = Talk("ses_1", revert={"messageID": "msg_ses_1_5"}) if chance.random() < 0.3 else Talk("ses_1")
    made.user("hello", picture).assistant("hi", call, {"type": "patch", "files": ["a", "b"]})
    made.user("sum up", {"type": "compaction"}).assistant("a summary", summary=True, parentID="msg_ses_1_3")
    made.user("on", {"type": "subtask", "prompt": "do"}).assistant("", error={"name": "E", "data": {"message": "m"}})
    made.messages = [
        (
            damage.changed(message) | {"id": message["id"], "time": message["time"]},
            [damage.changed(part) | {"id": part["id"]} for part in parts],
        )
        for message, parts in made.messages
    ]
    return made


@cache
def database() -> bytes:
    return _database(talk(Random(1)))


def _database(made: Talk) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(f"PRAGMA page_size = 1024; {SCHEMA}")
        made.into_database(connection)
        connection.commit()
        return connection.serialize()


@many(250)
@given(chance=chances)
def test_a_damaged_database(chance: Random) -> None:
    data = bytearray(database())
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        kind, place = chance.randrange(6), chance.randrange(len(data))
        page = place // 1024 * 1024
        if kind < 2:
            data[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, data[place] ^ (1 << chance.randrange(8))))
        elif kind == 2:
            # the header of a page, which says what it is and where its cells lie
            data[page + chance.randrange(12)] = chance.randrange(256)
        elif kind == 3:
            data[page : page + 1024] = bytes(1024)
        elif kind == 4:
            other = chance.randrange(len(data) // 1024) * 1024
            data[page : page + 1024] = data[other : other + 1024]
        else:
            data[chance.randrange(100)] = chance.randrange(256)
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    with temporary_folder() as folder:
        (folder / "opencode.db").write_bytes(data)
        check_opencode(folder)


@many(150)
@given(chance=chances)
def test_a_database_with_anything_in_its_rows(chance: Random) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(_database(talk(chance)))
        for _ in range(chance.choice((0, 1, 2, 4))):
            table = chance.choice(("session", "message", "part"))
            column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            row = chance.choice(connection.execute(f"SELECT rowid FROM {table}").fetchall())[0]
            query = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?"
            connection.execute(query, (chance.choice(CELLS), row))
        connection.commit()
        data = connection.serialize()
    with temporary_folder() as folder:
        (folder / "opencode.db").write_bytes(data)
        check_opencode(folder)


@many(100)
@given(chance=chances)
def test_folders_with_damaged_files(chance: Random) -> None:
    damage = Damage(chance)
    with temporary_folder() as folder:
        talk(chance).into_folders(folder)
        files = sorted(path for path in folder.rglob("*.json"))
        for _ in range(chance.choice((0, 1, 2, 4))):
            file = chance.choice(files)
            kind = chance.randrange(5)
            if not file.is_file():
                continue
            if kind == 0:
                file.unlink()
            elif kind == 1:
                file.write_bytes(file.read_bytes()[: chance.randrange(200)])
            elif kind == 2:
                file.unlink()
                file.mkdir()
            elif kind == 3:
                try:
                    value = json.loads(file.read_bytes())
                except ValueError:  # damaged already
                    value = {}
                file.write_text(damage.text(damage.changed(value)), "utf-8", "surrogatepass")
            else:
                file.write_bytes(damage.bytes(file.read_bytes()))
        check_opencode(folder)


def corpus() -> list[Path]:
    return sorted(path for path in CORPUS.iterdir() if path.suffix in (".json", ".jsonl", FOLDERS))


@each("path", corpus(), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    if path.suffix == FOLDERS:
        check_folders(path.read_bytes())
    else:
        check(path.read_bytes(), f"ses_{path.name}")


def test_the_corpus_is_small() -> None:
    assert len(corpus()) <= 60
    assert sum(path.stat().st_size for path in corpus()) <= 150_000


def test_most_of_what_is_made_up_is_a_session() -> None:
    """Or else the tests above would only show that rubbish is refused."""
    for harness in HARNESSES:
        made = [Damage(Random(seed)) for seed in range(40)]
        found = [check(damage.lines(damage.records(harness)), "a.jsonl") for damage in made]
        assert sum(session is not None for session in found) >= 20
