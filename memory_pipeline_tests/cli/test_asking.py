"""What `memory recall`, `search`, `show`, `brief` and `pack` do with a bad question or a bad index: one sentence each,
an answer by words where there can be one, and the right exit code."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest
from filelock import FileLock

from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.messages import rebuild
from memory_pipeline.embeddings.opening import SCHEMA
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.command import IN_PROCESS, Command, called, memory, memory_json
from memory_pipeline_tests.prepared import copied, made_once
from memory_pipeline_tests.rows import DAY, observation, put, say
from memory_pipeline_tests.rows import workspace as new_workspace

RULE = "The kiln must never be fired above cone six, since the shelves warp."
OTHER = "The studio opens at nine on weekdays."
BINARY = bytes(range(1, 256)).decode("utf-8", "surrogateescape") * 300
LONG = "kiln shelves " * 8_000
ANSWERING = ("recall", "search")
MODEL = "all-MiniLM-L6-v2"
NAMES = {base: f"{base}-{MODEL}-384-v{SCHEMA}" for base in (MESSAGES, COLLECTION)}


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose workspace has two sessions and an observation in both collections."""
    made = made_once(tmp_path_factory, "asked", _make)
    return copied(made, tmp_path / "home")


def _make(home: Path) -> None:
    settings, lake = new_workspace(home / ".memory-pipeline")
    for session, project, line in (("s1", "pottery", RULE), ("s2", "studio", OTHER)):
        say(lake, session, f"user: {line}", "assistant: I will keep to it.")
        put(lake, "observations", observation(line, session=session, project=project, kind="rule", priority="high"))
    sessions = lake.read("sessions", [DAY])
    projects = pl.col("session_id").replace_strict({"s1": "pottery", "s2": "studio"})
    lake.replace("sessions", sessions.with_columns(project=projects), [DAY])
    rebuild(Workspace(settings, lake), [DAY], lambda day: None)


def index_of(home: Path) -> Path:
    return home / ".memory-pipeline" / "index"


def damage(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")


def told(home: Path, *args: str, code: int = 0, **env: str) -> tuple[str, str]:
    """What the command writes to stdout, and its one line on stderr, without the line's end."""
    done = memory(home, *args, env=env)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == (1 if done.stderr else 0), done.stderr
    assert "Traceback" not in done.stdout
    return done.stdout, done.stderr.rstrip("\n")


# --- questions ---


@each("command", ANSWERING)
def test_a_sound_index_answers_without_a_word_on_stderr(home: Path, command: str) -> None:
    out, err = told(home, command, "how hot may the kiln be fired?")
    assert RULE in out and err == ""


@pytest.mark.slow
def test_a_process_of_its_own_prints_what_the_process_of_the_test_prints(home: Path) -> None:
    """For each command that tests call without starting a program."""
    rules = home / "AGENTS.md"
    rules.write_text(f"# Rules\n\n- {RULE}\n", "utf-8")
    arguments = {
        **{"agents": ["--json"], "admin audit": [f"{rules}"], "context --pack": ["--project", f"{home}"]},
        **{"friction": [], "import": [f"{rules}", "--dry-run"]},
        **{"recall": ["how hot may the kiln be fired?"], "remember": [RULE], "review": ["--list"]},
        **{"search": ["kiln"], "settings": [], "show": [f"{DAY}"], "sql": ["select text from messages"], "status": []},
        "why": [observation(RULE)["observation_id"]],
    }
    assert set(arguments) == IN_PROCESS - {"admin push", "run --estimate"}
    called(home, "remember", RULE)  # each of both then says that it is pending
    called(home, "context", "--pack", "--project", f"{home}")  # and that the pack is the same
    for command, args in arguments.items():
        words = command.split()
        program, function = Command(home, *words, *args).result(), called(home, *words, *args)
        assert (program.stdout, program.stderr) == (function.stdout, function.stderr), command
        assert program.returncode == function.returncode, command


@each("command", ANSWERING)
@each(
    ("query", "sentence"),
    [
        ("", "The query is empty: give at least one word."),
        (" \t", "The query is empty: give at least one word."),
        ("?!…", "The query is empty: give at least one word."),
    ],
    ids=["empty", "blank", "signs"],
)
def test_what_cannot_be_looked_for(home: Path, command: str, query: str, sentence: str) -> None:
    assert told(home, command, query, code=2) == ("", sentence)


@each("command", ANSWERING)
def test_what_is_too_long_or_in_another_language(home: Path, command: str) -> None:
    out, err = told(home, command, LONG)
    assert RULE in out
    assert err == "Only the first 2,000 characters of the query are used."
    for query in ("Wie heiß darf der Ofen werden?", "窑炉能烧到多高？", "печь полка"):
        out, err = told(home, command, query)
        assert out and err == ""


@each("command", ANSWERING)
@each(
    ("options", "sentence"),
    [
        (["--from", "2026-02-30"], "'2026-02-30' is not a day; write it as YYYY-MM-DD."),
        (
            ["--from", "2026-02-05", "--to", "2026-02-01"],
            "The first day, 2026-02-05, is after the last, 2026-02-01; no day lies",
        ),
        (["--project", "oven"], "No session of a project 'oven' was read; known are pottery, studio."),
        (["--session", "s9"], "No session 's9' was read; `memory search --json` has their ids."),
        (["--session", "s" * 90_000], f"No session '{'s' * 79}…' was read;"),
        (["--harness", "cursor"], "'cursor': no such agent whose sessions were read; there are pi."),
        (["--priority", "urgent"], "'urgent': no such priority; there are high, medium, low."),
        (["--kind", "joke"], "'joke': no such kind; there are rule, preference, decision,"),
    ],
)
def test_filters_that_nothing_can_match_are_a_mistake(
    home: Path, command: str, options: list[str], sentence: str
) -> None:
    out, err = told(home, command, "kiln", *options, code=2)
    assert out == ""
    assert err.startswith(sentence)


@each("command", ANSWERING)
@each(
    ("options", "sentence"),
    [
        (["--from", "2999-01-01"], "Nothing found (from 2999-01-01); that day is in the future.\n"),
        (["--to", "1999-01-01"], "Nothing found (to 1999-01-01).\n"),
        (["--kind", "decision"], "Nothing found (kind decision).\n"),
        (["--priority", "LOW", "--project", "Pottery"], "Nothing found (project pottery, priority low).\n"),
        (["--session", "s2", "--priority", "medium"], "Nothing found (session s2, priority medium).\n"),
    ],
)
def test_filters_that_match_nothing_are_named(home: Path, command: str, options: list[str], sentence: str) -> None:
    assert told(home, command, "kiln", *options) == (sentence, "")


@each("command", ANSWERING)
def test_filters_take_names_as_they_are_written(home: Path, command: str) -> None:
    for options in (["--project", "POTTERY"], ["--priority", "High", "--kind", "rule"], ["--harness", "PI"]):
        assert RULE in told(home, command, "may the kiln be fired above cone six", *options)[0]


@each("name", ["", "nonsense", "../../etc/passwd", "n" * 90_000, BINARY])
def test_show_of_what_is_not_there(home: Path, name: str) -> None:
    out, err = told(home, "show", name, code=2)
    assert out == ""
    assert err.startswith("There is no message or session '") and err.endswith("`memory search` prints their ids.")
    assert len(err) < 700


@each("name", ["nowhere", "/nowhere", "n" * 90_000, BINARY])
def test_brief_and_pack_of_what_is_not_there(home: Path, name: str) -> None:
    for args, code in (
        (["context", "--project"], 0),
        (["context", "--pack", "--project"], 2),
        (["context", "--pack", "--session"], 1),
    ):
        out, err = told(home, *args, name, code=code)
        assert (out == "" and name[:5] in err.replace("'", "")) or name == BINARY
        assert len(err) < 1_500


# --- the index ---


def test_of_an_empty_workspace_both_say_what_to_do(tmp_path: Path) -> None:
    for command in ANSWERING:
        assert told(tmp_path, command, "kiln") == (
            "Nothing found.\n",
            "Answered by keywords from the tables: nothing is indexed yet; `memory run` indexes it.",
        )


def test_without_an_index_words_answer(home: Path) -> None:
    shutil.rmtree(index_of(home))
    for command in ANSWERING:
        out, err = told(home, command, "how hot may the kiln be fired?")
        assert RULE in out
        assert err == "Answered by keywords from the tables: there is no index; `memory run --all` rebuilds it."
        assert RULE in told(home, command, "kiln fired", "--priority", "high")[0]
        assert not index_of(home).exists()


MISSING = {MESSAGES: "Answered by keywords from the tables", COLLECTION: "Observations by keywords from the tables"}


@pytest.mark.parametrize("base", NAMES)
def test_without_one_of_the_collections_words_answer(home: Path, base: str) -> None:
    shutil.rmtree(index_of(home) / NAMES[base])
    for command in ANSWERING:
        out, err = told(home, command, "how hot may the kiln be fired?")
        assert RULE in out
        assert err == f"{MISSING[base]}: {NAMES[base]} is gone from index/; `memory run --all` rebuilds it."
    assert RULE in told(home, "recall", "kiln fired", "--priority", "high")[0]


@pytest.mark.parametrize("base", NAMES)
def test_a_damaged_collection_is_told_also_by_the_next_question(home: Path, base: str) -> None:
    folder = index_of(home) / NAMES[base]
    damage(folder)
    out, err = told(home, "recall", "how hot may the kiln be fired?")
    assert RULE in out
    anew = "`memory run --all` rebuilds it."
    assert err == f"{MISSING[base]}: the index was damaged and was moved to {folder}.broken-1; {anew}"
    for command in ANSWERING:
        out, err = told(home, command, "how hot may the kiln be fired?")
        assert RULE in out
        if base == MESSAGES:
            assert err == f"{MISSING[base]}: there is no index; {anew}"


@pytest.mark.parametrize("base", NAMES)
def test_a_collection_in_use_is_told(home: Path, base: str) -> None:
    with FileLock(index_of(home) / f"{NAMES[base]}.lock"):
        out, err = told(home, "recall", "how hot may the kiln be fired?")
    assert RULE in out
    assert err == f"{MISSING[base]}: the index is in use by another process; ask again in a moment."


@pytest.mark.slow
def test_vectors_of_another_model_are_searched_by_it_or_by_words(home: Path) -> None:
    out, err = told(home, "recall", "how hot may the kiln be fired?", EMBEDDING_MODEL="nobody/no-such-model")
    assert RULE in out
    assert err.startswith(
        f"Searched with the vectors of {MODEL}, because those of nobody/no-such-model are incomplete;"
    )
    mark = index_of(home) / f"{MESSAGES}.searched.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"model": "nobody/no-such-model"}))
    for command in ANSWERING:
        out, err = told(home, command, "how hot may the kiln be fired?")
        assert RULE in out
        assert err.startswith("By words only: EMBEDDING_MODEL='nobody/no-such-model' cannot be loaded")


# --- a server ---


class Played(BaseHTTPRequestHandler):
    """A Qdrant server that answers everything with `status` and `body`."""

    status, body = 200, b"{}"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(self.body)

    do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def played(status: int, body: bytes = b'{"status": {"error": "no"}}') -> Iterator[str]:
    """The address of a server that answers so."""
    handler = type("Answers", (Played,), {"status": status, "body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def nobody() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


EMBEDDED = "start it, or check QDRANT_URL, without which the embedded index is used."
NOT_THERE = b'{"result": {"exists": false}, "status": "ok", "time": 0.1}'


@pytest.mark.slow
@each("is_marked", [True, False], ids=["was indexed", "never indexed"])
@each(
    ("server", "sentence"),
    [
        (nobody, "The Qdrant server at {} does not answer correctly ([Errno 111] Connection refused); " + EMBEDDED),
        (lambda: played(401), "The Qdrant server at {} refuses the API key; check QDRANT_API_KEY."),
        (lambda: played(403), "The Qdrant server at {} refuses the API key; check QDRANT_API_KEY."),
        (
            lambda: played(500),
            "The Qdrant server at {} does not answer correctly (500 Internal Server Error); " + EMBEDDED,
        ),
        (
            lambda: played(200, b'{"hello": ["world"]}'),
            "The Qdrant server at {} does not answer correctly (the server there speaks another protocol); " + EMBEDDED,
        ),
        (
            lambda: played(200, b"<html>Hello.</html>"),
            "The Qdrant server at {} does not answer correctly (the server there speaks another protocol); " + EMBEDDED,
        ),
        (lambda: played(200, NOT_THERE), "There is no collection '{name}' on the Qdrant server at {}; `memory run"),
    ],
    ids=["unreachable", "401", "403", "500", "other JSON", "no JSON", "without the collection"],
)
def test_a_server_that_does_not_help_is_told_and_words_answer(
    home: Path, server: Callable[[], object], sentence: str, is_marked: bool
) -> None:
    for base, name in NAMES.items():
        mark = index_of(home) / f"{base}.server.searched.json"
        mark.unlink(missing_ok=True)
        if is_marked:
            mark.write_text(json.dumps({"name": name, "model": MODEL, "dimension": 384}))
    name = NAMES[MESSAGES] if is_marked else NAMES[MESSAGES].replace("384", "*")
    with server() as url:  # type: ignore[attr-defined]
        for command in ANSWERING:
            env = {"QDRANT_URL": url, "QDRANT_API_KEY": "a-key-of-the-kiln"}
            out, err = told(home, command, "how hot may the kiln be fired?", **env)
            assert RULE in out
            assert err.startswith("Answered by keywords from the tables: " + sentence.format(url, name=name))
            assert "a-key-of-the-kiln" not in out + err


def test_what_needs_no_index_asks_no_server(home: Path) -> None:
    with nobody() as url:
        message = memory_json(home, "search", RULE, env={"QDRANT_URL": url})["hits"][0]["source_id"]
        for args in (
            ["show", message],
            ["context", "--project", str(home)],
            ["context", "--pack", "--project", str(home)],
        ):
            done = memory(home, *args, env={"QDRANT_URL": url})
            assert done.returncode == 0
            assert url not in done.stderr
