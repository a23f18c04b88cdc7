"""`memory backfill`: what it will take is told first, it goes month by month, and a later call goes on."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.command import Command, called, memory
from memory_pipeline_tests.conftest import Entry, assistant, user, write_session
from memory_pipeline_tests.llm.openai_server import Say, openai_server
from memory_pipeline_tests.prepared import made_once

DAYS = (date(2025, 1, 30), date(2025, 2, 3), date(2025, 2, 27), date(2025, 3, 2), date(2025, 3, 4))
RULES = ("Never use npm here, always use pnpm.", "Run make check before every commit.", "Never touch the lockfile.")


def talk(day: date, number: int) -> list[Entry]:
    """A conversation from which there is something to observe, other than on the days before."""
    start, said = datetime(day.year, day.month, day.day, 9, tzinfo=UTC), list[Entry]()
    texts = [f"Always call service {number} by its port {9000 + number}.", *RULES, "Why does the build fail?"]
    for turn, text in enumerate(texts):
        asked = start + timedelta(minutes=2 * turn)
        said.append(user(asked, text, f"{day} {turn} user"))
        said.append(assistant(asked + timedelta(minutes=1), f"The cause was a stale lock {number}.", f"{day} {turn}"))
    return said


def write(folder: Path) -> Path:
    for number, day in enumerate(DAYS):
        write_session(folder / f"{day}.jsonl", *talk(day, number))
    return folder


def rows(home: Path) -> dict[str, list[Any]]:
    """Every derived table but the record of vectors, which names the very index."""
    lake, out = Lake(home / ".memory-pipeline" / "lake"), ("files", "embeddings", "ledger", "events")
    left = [name for name in TABLES if name not in out]
    events = lake.read("events").filter(pl.col("kind").is_in(["decided", "promoted"])).drop("happened_at").rows()
    # which of two lines that say the same is offered, and which supports it, is a matter of which is read first
    return {"events": events} | {name: lake.read(name).rows() for name in left if name not in ("proposals", "supports")}


def run_at_once(home: Path) -> None:
    assert memory(home, "run", "--all", "--sessions", str(write(home / "sessions"))).returncode == 0


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "backfilled_at_once", run_at_once)


def test_without_a_word_it_only_says_what_it_would_take(tmp_path: Path) -> None:
    asked = memory(tmp_path, "backfill", "--sessions", str(write(tmp_path / "sessions")))
    assert asked.returncode == 2, asked.stderr
    assert "5 with sessions, 2025-01-30 to 2025-03-04; 0 are up to date, 5 are left" in asked.stderr
    assert "5 files with 50 messages" in asked.stderr
    assert "none is set: no tokens, no cost" in asked.stderr
    assert "Nothing was run. There is no terminal" in asked.stderr
    assert not Lake(tmp_path / ".memory-pipeline" / "lake").days("observations")


@each(
    ("call", "code", "told"),
    [
        (["--from", "2025-03-05", "--to", "2025-03-01"], 2, "The first day, 2025-03-05, is after the last"),
        (["--from", "2125-03-01"], 1, "No day of the range has a session; sessions were found from 2025-01-30 to"),
        (["--from", "March"], 2, "'March' is not a day; write it as YYYY-MM-DD."),
        (["--json"], 2, "--json cannot ask for confirmation: add --yes."),
        (["--from", "2025-02-04", "--to", "2025-02-09"], 1, "No day of the range has a session; "),
    ],
)
def test_a_wrong_call_is_one_sentence(tmp_path: Path, call: list[str], code: int, told: str) -> None:
    result = called(tmp_path, "backfill", *call, "--sessions", str(write(tmp_path / "sessions")))
    assert result.returncode == code and told in result.stderr and "Traceback" not in result.stderr


def test_days_before_the_first_one_are_told(tmp_path: Path) -> None:
    call = ("backfill", "--sessions", str(write(tmp_path / "sessions")))
    env = {"MEMORY_START_DATE": "2025-02-20"}
    told = "2 days before 2025-02-20 or in the future are left out; see `memory status`."
    some = called(tmp_path, *call, env=env)
    assert some.returncode == 2 and told in some.stderr and "3 with sessions" in some.stderr
    none = called(tmp_path, *call, "--to", "2025-01-31", env=env)
    assert none.returncode == 1 and told in none.stderr


@pytest.mark.slow
def test_month_by_month_makes_the_same_as_one_run(tmp_path: Path, at_once: Path) -> None:
    lake = tmp_path / ".memory-pipeline" / "lake"
    lake.mkdir(parents=True)
    (lake / "salt").write_bytes((at_once / ".memory-pipeline/lake/salt").read_bytes())
    call = ("backfill", "--yes", "--sessions", str(at_once / "sessions"))
    whole = memory(tmp_path, *call)
    assert whole.returncode == 0, whole.stderr
    months = [line.partition(" to ")[0] for line in whole.stderr.splitlines() if " days are left" in line]
    assert months == ["2025-01-30", "2025-02-03", "2025-03-02"]
    assert rows(tmp_path) == rows(at_once)
    again = memory(tmp_path, *call, "--json")
    assert "5 are up to date, none are left" in again.stderr and " days are left" not in again.stderr
    assert json.loads(again.stdout)["failure"] is None


@pytest.mark.slow
def test_a_call_that_was_stopped_is_gone_on_with(tmp_path: Path, at_once: Path) -> None:
    """Ctrl-C after the first month: the second call says what is done and does the rest."""
    call = ("backfill", "--yes", "--sessions", str(at_once / "sessions"))
    first = Command(tmp_path, *call)
    messages = tmp_path / ".memory-pipeline/lake/messages"
    end = time.monotonic() + 300
    while not list(messages.glob("2025-02*.parquet")):
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    stopped = first.result()
    assert stopped.returncode == 130 and "The run was stopped" in stopped.stderr
    second = memory(tmp_path, *call)
    assert second.returncode == 0, second.stderr
    assert "; 0 are up to date" not in second.stderr
    assert rows(tmp_path).keys() == rows(at_once).keys() and len(rows(tmp_path)["messages"]) == 50


@pytest.mark.nightly
def test_when_the_budget_is_used_up_the_months_that_are_left_wait(tmp_path: Path) -> None:
    from memory_pipeline_tests.cli.test_model import environment, quoting

    call = ("backfill", "--yes", "--sessions", str(write(tmp_path / "sessions")))
    with openai_server(lambda asked: Say(quoting(asked), tokens=(3_000, 1_000))) as server:
        env = environment(server, MEMORY_DAILY_BUDGET_TOKENS="13000")
        short = memory(tmp_path, *call, env=env)
        assert "Run the command again to resume. The budget of" in short.stderr, short.stderr
        assert "gpt-5-mini: 5 calls" in short.stderr and "a call on each" in short.stderr
        lake = Lake(tmp_path / ".memory-pipeline" / "lake")
        assert date(2025, 3, 4) not in lake.days("observations")
        whole = memory(tmp_path, *call, env=environment(server))
        assert whole.returncode == 0 and "Run the command again to resume" not in whole.stderr, whole.stderr
        assert len(server.requests) == 5  # nothing was paid twice
