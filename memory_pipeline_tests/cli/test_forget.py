"""`memory forget`: what it takes out stands nowhere any more, and no later run brings it back."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.operations.forgetting import forget as forgetting
from memory_pipeline.operations.forgetting.changes import BY_HAND as BY_HAND_LINES
from memory_pipeline.operations.forgetting.forget import forget, look, now_utc, unfinished
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.test_model import environment
from memory_pipeline_tests.llm.openai_server import Asked, openai_server
from memory_pipeline_tests.prepared import copied, made_once

WORD, OTHER = "zebrafinch", "quillwort"
"""Said in a rule of one session; in the title and in the words of another one."""
SESSIONS = ("claude/aa99e079*", "pi/2026-03-04*", "pi/2026-03-02*", "codex/rollout-2026-03-04*")
"""Examples: those two, and one more on each of their days."""
BY_HAND = f"- the {WORD} aviary is mine, written by hand"
LATER = {"MEMORY_DEFAULT_SESSION_DIRS": "false", "MEMORY_TIMEZONE": "UTC"}


def plant(sessions: Path) -> None:
    for path in (path for pattern in SESSIONS for path in EXAMPLES.glob(pattern)):
        (sessions / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, sessions / path.parent.name)
    for path in sessions.rglob("*.jsonl"):
        text = path.read_text("utf-8").replace("for foreign parcels", f"for {WORD} parcels")
        text = text.replace("a parcel page with live status", f"a {OTHER} page with live status")
        text = text.replace("heartbeat every 15 seconds", f"{OTHER} heartbeat every 15 seconds")
        path.write_text(text, "utf-8")


def quoting(asked: Asked) -> str:
    """An answer with what was planted, and a few other lines, as its facts."""
    said = re.findall(r"^\[#(\d+) (\d\d:\d\d) (?:user|assistant)\]\n([^\n]{20,200})", asked.prompt, re.M)
    said.sort(key=lambda one: WORD not in one[2] and OTHER not in one[2])
    facts = "\n".join(f"* 🔴 decision ({at}) [#{number}] {words}" for number, at, words in said[:4])
    numbers = re.findall(r"^\[#(\d+) ", asked.prompt, re.M)
    return (
        f'<observations><segment from="#{numbers[0]}" to="#{numbers[-1]}"><title>Evidence</title>'
        f"<narrative>It was said.</narrative><facts>\n{facts}\n</facts></segment></observations>"
    )


def make(folder: Path) -> None:
    """A workspace that was observed by a model, reviewed, asked and shown to agents."""
    plant(folder / "sessions")
    with openai_server(quoting) as server:
        own = {**LATER, **environment(server), "MEMORY_SESSION_DIRS": str(folder / "sessions")}
        for command in (
            ("run", "--all"),
            ("remember", f"the {WORD} contract of the carrier ends in May"),
            ("recall", f"what of {WORD} parcels?", "--quotes"),
            ("search", f"{OTHER} heartbeat"),
            ("context", "--project", "parcel-tracker"),
            ("context", "--pack"),
        ):
            result = memory(folder, *command, env=own)
            assert result.returncode == 0, result.stderr
    env = {**LATER, "MEMORY_SESSION_DIRS": str(folder / "sessions")}
    pending = memory_json(folder, "review", env=env)["pending"]
    wanted = [row["proposal_id"] for row in pending if WORD in row["text"] or OTHER in row["text"]]
    assert wanted
    assert memory(folder, "review", *(f"--approve={p}" for p in wanted), env=env).returncode == 0
    with (folder / ".memory-pipeline/MEMORY.md").open("a", encoding="utf-8") as file:
        file.write(f"\n## My own\n{BY_HAND}\n")
    assert memory(folder, "run", "--all", env=env).returncode == 0  # without the model: by quotes


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prepared = made_once(tmp_path_factory, "to-forget", make)
    copied(prepared / ".memory-pipeline", tmp_path / ".memory-pipeline")
    (tmp_path / "sessions").symlink_to(prepared / "sessions")
    return tmp_path


def env_of(home: Path) -> dict[str, str]:
    return {**LATER, "MEMORY_SESSION_DIRS": str((home / "sessions").resolve())}


def texts_of(path: Path) -> Iterator[str]:
    """The file as it is, and what it holds where that hides text."""
    data = path.read_bytes()
    yield data.decode("utf-8", "replace")
    if ".parquet" in path.name:
        yield repr(pl.read_parquet(path, glob=False).to_dicts())
    elif data[:15] == b"SQLite format 3":
        with closing(sqlite3.connect(path)) as connection:
            yield "\n".join(connection.iterdump())


def places(home: Path, word: str) -> set[str]:
    """Where the word stands, by folder or name: all that the workspace and Dagster's home hold."""
    workspace = home / ".memory-pipeline"
    files = [path for path in workspace.rglob("*") if path.is_file()]
    found = [path for path in files if any(word in text.lower() for text in texts_of(path))]
    return {path.relative_to(workspace).parts[0] for path in found}


@pytest.mark.slow
def test_words_stand_nowhere_and_nothing_brings_them_back(home: Path) -> None:
    env = env_of(home)
    before = places(home, WORD)
    expected = {"lake", "index", "answers", "usage", "backups", "dagster", "memory", "MEMORY.md", "briefings"}
    assert before >= expected, before
    told = memory_json(home, "forget", WORD, "--dry-run", env=env)
    assert places(home, WORD) == before
    assert told["counts"].keys() >= {"messages", "observations", "proposals", "index", "answers", "usage", "MEMORY.md"}
    assert any(BY_HAND in one["line"] for one in told["lines"] if one["place"] == BY_HAND_LINES)
    assert [path for path in told["transcripts"] if "aa99e079" in path]

    kept = memory(home, "forget", WORD, "--yes", env=env)
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert BY_HAND in (home / ".memory-pipeline/MEMORY.md").read_text("utf-8")  # a user's own line stays
    assert "aa99e079" in kept.stdout
    done = memory(home, "forget", WORD, "--yes", "--by-hand", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert places(home, WORD) == set()

    assert memory(home, "run", "--all", env=env).returncode == 0
    assert places(home, WORD) == set()
    assert memory(home, "admin", "index", "rebuild", "--yes", env=env).returncode == 0
    assert places(home, WORD) == set()
    messages = Lake(home / ".memory-pipeline/lake").read("messages")["text"]
    assert messages.str.contains("for [forgotten] parcels", literal=True).any()  # the rest of what was said is there
    shutil.rmtree(home / ".memory-pipeline/lake/files")  # all transcripts are read anew
    shutil.rmtree(home / ".memory-pipeline/lake/messages")
    assert memory(home, "run", "--all", env=env).returncode == 0
    assert places(home, WORD) == set()
    assert places(home, OTHER) >= {"lake", "index", "memory"}  # and nothing else went


@pytest.mark.slow
def test_a_session_goes_with_its_own_words_and_is_not_read_again(home: Path) -> None:
    env, lake = env_of(home), Lake(home / ".memory-pipeline/lake")
    (session,) = {s for s, text in lake.read("messages").select("session_id", "text").iter_rows() if OTHER in text}
    others = set(lake.read("sessions")["session_id"]) - {session}
    assert places(home, OTHER) >= {"lake", "index", "answers", "usage", "dagster", "memory"}
    done = memory(home, "forget", session, "--yes", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert places(home, OTHER) == {"usage"}  # what a person asked for is not what the session said
    assert memory(home, "forget", OTHER, "--yes", env=env).returncode == 0
    assert places(home, OTHER) == set()
    assert set(lake.read("sessions")["session_id"]) == others
    assert memory(home, "run", "--all", env=env).returncode == 0
    assert places(home, OTHER) == set()
    assert set(Lake(lake.root).read("sessions")["session_id"]) == others
    assert "forgotten" in memory(home, "status", env=env).stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_a_line_goes_with_the_words_that_carry_it(home: Path) -> None:
    env, lake = env_of(home), Lake(home / ".memory-pipeline/lake")
    proposals = lake.read("proposals")
    row = next(r for r in proposals.iter_rows(named=True) if WORD in r["text"] or OTHER in r["text"])
    said = lake.read("messages").filter(pl.col("text").str.contains(row["text"], literal=True)).height
    assert said
    done = memory(home, "forget", row["proposal_id"], "--yes", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    after = Lake(lake.root)
    for table in ("proposals", "events"):
        assert row["proposal_id"] not in after.read(table)["proposal_id"], table
    memory_md = (home / ".memory-pipeline/MEMORY.md").read_text("utf-8")
    assert row["proposal_id"] not in memory_md
    assert BY_HAND in memory_md
    assert memory(home, "run", "--all", env=env).returncode == 0
    assert not Lake(lake.root).read("proposals")["text"].str.contains(row["text"], literal=True).any()


STEPS = (
    *("_leave_hashes", "remove_points", "markdown_changes", "clean_tables", "reconcile", "file_changes"),
    *("database_changes", "_clean_versions"),
)


@pytest.mark.slow
def test_one_that_is_killed_is_finished_by_the_next_call(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is killed one step later than the one before it, and the last is not."""
    settings = Settings(workspace=home / ".memory-pipeline", timezone="UTC", default_session_dirs=False)
    request, _ = look(settings, WORD, by_hand=True)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for step in STEPS:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(forgetting, step, killed)
            forget(settings, request, now_utc())
        begun = unfinished(settings)
        assert begun and places(home, WORD) >= {"forgetting.json"}, step
        request = begun
    forget(settings, request, now_utc())
    assert unfinished(settings) is None
    assert places(home, WORD) == set()
