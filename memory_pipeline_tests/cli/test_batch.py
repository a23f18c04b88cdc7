"""`memory admin batch`, round after round, as a person calls it, over real HTTP to loopback."""

from __future__ import annotations

import json
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.cli.command import Command, memory, memory_json
from memory_pipeline_tests.cli.test_model import quoting
from memory_pipeline_tests.llm.batch_server import BatchServer, batch_server
from memory_pipeline_tests.llm.openai_server import Asked, Fail, openai_server

CALL = ("--all", "--sessions", str(EXAMPLES / "pi"))


def environment(server: BatchServer, **more: str) -> dict[str, str]:
    model = {"OBSERVER_MODEL": "openai-responses:gpt-5-mini", "OBSERVER_BASE_URL": server.url}
    return model | {"OPENAI_API_KEY": "sk-test", "MEMORY_MODEL_RETRIES": "0", "MEMORY_TIMEZONE": "UTC"} | more


def state(home: Path) -> dict[str, Any]:
    return json.loads((home / ".memory-pipeline/batch.json").read_text())


def rounds(home: Path, server: BatchServer, env: dict[str, str]) -> list[str]:
    """What is said by each call until nothing is left."""
    said = []
    for _ in range(20):
        done = memory(home, "admin", "batch", "--yes", *CALL, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
        server.end()
        if "none has a request for a batch" in done.stdout:
            return said
    raise AssertionError(f"it does not end: {said}")


@pytest.mark.slow
def test_a_backfill_in_batches_costs_half_and_the_run_after_it_asks_nothing(tmp_path: Path) -> None:
    with openai_server(quoting) as server:
        alone_env = environment(server)  # type: ignore[arg-type]
        alone = memory_json(tmp_path / "alone", "run", *CALL, env=alone_env)
    with batch_server(quoting) as server:
        env = environment(server)
        expected = memory_json(tmp_path, "run", "--estimate", *CALL, env=env)["total"]
        said = rounds(tmp_path, server, env)
        ran = memory_json(tmp_path, "run", *CALL, env=env)
    assert server.requests == []
    assert len(server.batched) == alone["model_calls"] == expected["calls"] >= 3
    told = [re.search(r"(\d+) requests of \d+ days, about .* costs about (\S+) USD.*at most (\S+)\.", s) for s in said]
    assert sum(int(found[1]) for found in told if found) == expected["calls"]
    about = sum(float(found[2]) for found in told if found)
    assert about == pytest.approx(expected["cost_usd"] / 2, rel=0.3)
    assert about < sum(float(found[3]) for found in told if found)
    assert ran["windows"]["left"] == 0 and ran["failure"] is None
    spent = Lake(tmp_path / ".memory-pipeline/lake").read("ledger")["cost_usd"].sum()
    assert spent == pytest.approx(alone["spent_usd"] / 2)
    assert observed(tmp_path) == observed(tmp_path / "alone") != []
    assert state(tmp_path) == {"open": None, "refused": {}}


def observed(home: Path) -> list[Any]:
    """But for the digests in marks of secrets, which each workspace makes with its own salt."""
    rows = Lake(home / ".memory-pipeline/lake").read("observations").select("day", "text", "priority").rows()
    return [(day, re.sub(r":[0-9a-f]{6}\]", "]", text), priority) for day, text, priority in rows]


@pytest.mark.slow
def test_nothing_is_sent_unless_somebody_agrees(tmp_path: Path) -> None:
    with batch_server(quoting) as server:
        done = memory(tmp_path, "admin", "batch", *CALL, env=environment(server))
        assert done.returncode == 0, done.stderr
        assert "Nothing was sent. `memory admin batch --yes` skips the confirmation." in done.stdout
        sent = ("admin", "batch", "--yes", "--all", "--sessions", str(EXAMPLES))
        broke = memory(tmp_path, *sent, env=environment(server, MEMORY_DAILY_BUDGET_USD="0.0001"))
        assert broke.returncode == 1 and "MEMORY_DAILY_BUDGET_USD" in broke.stderr
        assert server.batches == server.files == {}
        assert not (tmp_path / ".memory-pipeline/batch.json").exists()
        some = memory(tmp_path, *sent, env=environment(server, MEMORY_DAILY_BUDGET_USD="0.03"))
        assert some.returncode == 0 and "The rest must wait" in some.stdout
        assert 0 < len(state(tmp_path)["open"]["requests"]) < 8


@pytest.mark.nightly
def test_while_a_batch_is_out_a_run_leaves_its_windows_for_later(tmp_path: Path) -> None:
    with batch_server(quoting) as server:
        env = environment(server)
        memory(tmp_path, "admin", "batch", "--yes", *CALL, env=env)
        out = memory(tmp_path, "admin", "batch", "--yes", *CALL, env=env).stdout
        assert "is not done yet" in out and len(server.lines) == 1
        ran = memory_json(tmp_path, "run", *CALL, env=env)
        first = len(server.lines["batch_1"])
        assert ran["windows"]["left"] >= first
        assert "batch_1" in memory(tmp_path, "status", env=env).stdout
        asked = {asked.prompt for asked in server.requests}
        server.end()
        assert not asked & {asked.prompt for asked in server.batched}
        rounds(tmp_path, server, env)
        assert memory_json(tmp_path, "run", *CALL, env=env)["windows"]["left"] == 0
        assert len({a.prompt for a in server.batched} | asked) == len(server.batched) + len(server.requests)


@pytest.mark.slow
def test_killed_before_it_knew_the_batch_it_finds_it_and_sends_none_twice(tmp_path: Path) -> None:
    with batch_server(quoting) as server:
        env = environment(server)
        server.hold = threading.Event()
        command = Command(tmp_path, "admin", "batch", "--yes", *CALL, env=env)
        assert server.made.wait(300)
        busy = memory(tmp_path, "admin", "batch", "--yes", *CALL, env=env)
        assert busy.returncode == 1 and "Another `memory run` is using" in busy.stderr
        command.send_signal(signal.SIGKILL)
        assert command.result().returncode == -signal.SIGKILL
        server.hold.set()
        server.hold = None
        assert state(tmp_path)["open"]["handle"] is None
        assert "is not done yet" in memory(tmp_path, "admin", "batch", "--yes", *CALL, env=env).stdout
        server.end()
        assert "Received batch batch_1" in memory(tmp_path, "admin", "batch", "--yes", *CALL, env=env).stdout
        keys = [line["custom_id"] for lines in server.lines.values() for line in lines]
        assert len(keys) == len(set(keys))


@pytest.mark.nightly
def test_what_the_batch_refuses_is_left_to_the_run(tmp_path: Path) -> None:
    refused: list[str] = []

    def picky(asked: Asked) -> Any:
        if not refused and "custom_id" in asked.headers:
            refused.append(asked.prompt)
            return Fail(400, "not this one")
        return quoting(asked)

    with batch_server(picky) as server:
        said = "".join(rounds(tmp_path, server, environment(server)))
        assert "1 refused; `memory run` sends them individually: " in said and "not this one" in said
        assert sum(asked.prompt == refused[0] for asked in server.batched) == 1
        ran = memory_json(tmp_path, "run", *CALL, env=environment(server))
    assert server.requests[0].prompt == refused[0]
    assert ran["windows"]["left"] == 0


def test_without_a_model_or_batches_it_says_what_to_do(tmp_path: Path) -> None:
    none = memory(tmp_path, "admin", "batch", *CALL)
    assert none.returncode == 1 and "`memory setup`" in none.stderr
    for model in ("ollama:qwen3", "claude -p"):
        done = memory(tmp_path, "admin", "batch", "--yes", *CALL, env={"OBSERVER_MODEL": model})
        assert done.returncode == 1 and "only openai:, anthropic: and google: have batches" in done.stderr
