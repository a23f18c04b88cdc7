"""`memory run` and `memory run --estimate` with a model: whole days through Dagster, over real HTTP to loopback."""

from __future__ import annotations

import re
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cli.command import Command, memory, memory_json
from memory_pipeline_tests.conftest import SHARED
from memory_pipeline_tests.llm.openai_server import Asked, Fail, OpenAIServer, Say, openai_server

EXAMPLE = EXAMPLES / "pi"
"""Three days with four windows to observe."""
FIXTURES = (
    "pi/raquezha-pi.dev__full-2026-04-23-71c480.jsonl",
    "claude/entireio-cli__full-2026-02-04-887b01.jsonl",
    "codex/EntityProcess-agentv__full-2026-06-26-c2c3a9.jsonl",
)


def environment(server: OpenAIServer, **more: str) -> dict[str, str]:
    model = {"OBSERVER_MODEL": "openai:gpt-5-mini", "OBSERVER_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
    return model | {"MEMORY_MODEL_RETRIES": "0", "MEMORY_TIMEZONE": "UTC"} | more


def quoting(asked: Asked) -> str:
    """An answer in the format, with the first lines of the first few messages as its facts; to a question about
    friction, that there is none."""
    said = re.findall(r"^\[#(\d+) (\d\d:\d\d) (?:user|assistant)\]\n([^\n]{20,200})", asked.prompt, re.M)
    facts = "\n".join(
        f"* {'🔴' if i == 0 else '🟡'} decision ({at}) [#{n}] {words}" for i, (n, at, words) in enumerate(said[:4])
    )
    numbers = re.findall(r"^\[#(\d+) ", asked.prompt, re.M)
    if not numbers:
        return '{"groups": []}'
    return (
        f'<observations><segment from="#{numbers[0]}" to="#{numbers[-1]}"><title>Evidence</title>'
        f"<narrative>It was said.</narrative><facts>\n{facts}\n</facts></segment></observations>"
    )


def lake(home: Path) -> Lake:
    return Lake(home / ".memory-pipeline" / "lake")


@pytest.mark.slow
def test_a_run_over_fixtures_and_the_same_again_asks_nothing(tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared fixtures are not there")
    sessions = tmp_path / "sessions"
    for name in FIXTURES:
        (sessions / name).parent.mkdir(parents=True)
        shutil.copy(SHARED / "fixtures" / name, sessions / name)
    call = ("--all", "--sessions", str(sessions))
    with openai_server(quoting) as server:
        expected = memory_json(tmp_path, "run", "--estimate", *call, env=environment(server))
        assert server.requests == []
        first = memory_json(tmp_path, "run", *call, env=environment(server))
        asked = len(server.requests)
        assert asked == expected["total"]["calls"] == first["model_calls"] >= 3
        tables = {p.name: p.read_bytes() for p in (tmp_path / ".memory-pipeline/lake").rglob("*.parquet")}
        second = memory_json(tmp_path, "run", *call, env=environment(server))
        assert len(server.requests) == asked
        assert memory_json(tmp_path, "run", "--estimate", *call, env=environment(server))["total"]["calls"] == 0
    assert {p.name: p.read_bytes() for p in (tmp_path / ".memory-pipeline/lake").rglob("*.parquet")} == tables
    assert first["failure"] is second["failure"] is None
    assert first["windows"]["left"] == 0 and first["checks"]["failing"].keys() <= {"observations/compression_ratio"}
    assert 0 < first["spent_usd"] < 0.01
    assert (lake(tmp_path).read("observations")["observer"].str.starts_with("openai:gpt-5-mini#")).all()


def both(asked: Asked) -> Say:
    """Answers as the observer or the reflector, and counts tokens as they are estimated."""
    shown = re.findall(r"^(o\d+) \S+ \w+, [^:]+: (.*)$", asked.prompt, re.M)
    text = "\n".join(f"* 🔴 Patterns | convention [{name}] {text}" for name, text in shown[::2]) or quoting(asked)
    return Say(text, tokens=(estimate(asked.system) + estimate(asked.prompt), estimate(text)))


@pytest.mark.nightly
@pytest.mark.slow
def test_what_both_models_were_said_to_cost_is_near_what_they_did(tmp_path: Path) -> None:
    """README.md names the factor."""
    call = ("--all", "--sessions", str(EXAMPLES))
    with openai_server(both) as server:
        reflector = {"REFLECTOR_MODEL": "openai:other", "REFLECTOR_BASE_URL": server.url, "REFLECTOR_PRICE": "10/30"}
        env = environment(server, MEMORY_DAILY_BUDGET_USD="50", OBSERVER_PRICE="1/3", **reflector)
        said = memory_json(tmp_path, "run", "--estimate", *call, env=env)
        assert server.requests == []
        summary = memory_json(tmp_path, "run", *call, env=env)
        assert memory_json(tmp_path, "run", "--estimate", *call, env=env)["total"]["calls"] == 0
    ledger = lake(tmp_path).read("ledger").filter(~pl.col("cached"))
    assert summary["failure"] is None and summary["checks"]["failing"].keys() <= {"observations/compression_ratio"}
    for stage in ("observations", "reflections"):
        true, told = ledger.filter(pl.col("stage") == stage), said["stages"][stage]
        tokens, usd = true["input_tokens"].sum(), true["cost_usd"].sum()
        assert told["calls"] == true.height
        assert tokens / 1.5 < told["input_tokens"] < tokens * 1.5
        assert usd / 2 < told["cost_usd"] < usd * 2 and usd < told["most_usd"]
    friction, told = ledger.filter(pl.col("stage") == "friction"), said["stages"]["friction_clusters"]
    assert 0 < friction.height <= told["calls"] and friction["cost_usd"].sum() < told["most_usd"]
    total = sum(told["cost_usd"] for stage, told in said["stages"].items() if stage != "pool_reflections")
    assert said["total"]["cost_usd"] == pytest.approx(total)
    assert said["stages"]["pool_reflections"]["calls"] == 0


@pytest.mark.slow
def test_a_killed_run_pays_nothing_twice(tmp_path: Path) -> None:
    enough = threading.Event()

    def slow(asked: Asked) -> Any:
        if len(server.requests) > 2:
            enough.set()
            return Say(quoting(asked), after=60)
        return quoting(asked)

    call = ["run", "--all", "--sessions", str(EXAMPLE)]
    with openai_server(slow) as server:
        env = environment(server, MEMORY_MODEL_CONCURRENCY="2")
        run = Command(tmp_path, *call, env=env)
        assert enough.wait(300)
        time.sleep(0.3)
        run.send_signal(signal.SIGKILL)
        run.result()
        answered = {asked.prompt for asked in server.requests[:2]}
        reserved = lake(tmp_path).read("ledger").filter(pl.col("state") == "reserved")
    assert 1 <= reserved.height <= 2 and reserved["cost_usd"].min() > 0  # they may have been billed
    with openai_server(quoting) as later:
        summary = memory_json(tmp_path, *call, env=environment(later))
        asked_again = [asked.prompt for asked in later.requests]
    assert summary["failure"] is None and summary["windows"]["left"] == 0
    assert not answered & set(asked_again) and len(asked_again) == 4 - len(answered)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_that_is_stopped_while_it_asks_asks_no_more(tmp_path: Path) -> None:
    asked_once, stopped = threading.Event(), threading.Event()

    def slow(asked: Asked) -> Any:
        asked_once.set()
        stopped.wait(300)
        return Say(quoting(asked), after=5)

    call = ["run", "--all", "--sessions", str(EXAMPLES)]
    with openai_server(slow) as server:
        run = Command(tmp_path, *call, env=environment(server, MEMORY_MODEL_CONCURRENCY="1"))
        assert asked_once.wait(300)
        time.sleep(0.3)
        run.send_signal(signal.SIGTERM)  # Dagster takes it for Ctrl-C
        stopped.set()
        ended = run.result()
        assert ended.returncode == 130 and "The run was stopped" in ended.stderr
        assert len(server.requests) == 1


@pytest.mark.slow
def test_what_observing_has_left_and_what_nothing_carries_is_told(tmp_path: Path) -> None:
    made_up = "<observations><facts>\n* 🔴 rule [#1] Zebras deploy on Fridays.\n</facts></observations>"
    call = ["run", "--all", "--sessions", str(EXAMPLE)]
    with openai_server(made_up) as server:
        env = environment(server)
        memory_json(tmp_path, *call, env=env | {"MEMORY_DAILY_BUDGET_USD": "0"})
        before = memory_json(tmp_path, "status", env=env)
        memory_json(tmp_path, *call, env=env)
        after = memory_json(tmp_path, "status", env=env)
    assert (before["windows_to_observe"], after["windows_to_observe"]) == (4, 0)
    assert before["spent_today_usd"] == 0 < after["spent_today_usd"] and after["model_calls_today"] == 4
    observation = lake(tmp_path).read("observations")["observation_id"][0]
    told = memory(tmp_path, "why", observation).stdout
    assert "ungrounded" in told and "trust model" in told and "No message supports it" in told


@pytest.mark.slow
def test_a_day_whose_quotes_wait_for_a_model_is_not_finished(tmp_path: Path) -> None:
    call = ["run", "--all", "--sessions", str(EXAMPLE)]
    assert memory_json(tmp_path, *call, env={"MEMORY_TIMEZONE": "UTC"})["days_unfinished"] == []
    with openai_server(quoting) as server:
        env = environment(server, MEMORY_DAILY_BUDGET_USD="0")
        summary = memory_json(tmp_path, *call, env=env)
        assert "not finished" in memory(tmp_path, *call, env=env).stdout
    assert not server.requests and summary["windows"]["left"] == 0
    assert summary["days_unfinished"] == summary["days"]


@pytest.mark.slow
def test_reflections_that_wait_for_a_model_are_told_everywhere(tmp_path: Path) -> None:
    call = ["run", "--all", "--sessions", str(EXAMPLE)]
    with openai_server(both) as server:
        env = {"REFLECTOR_MODEL": "openai:scripted", "REFLECTOR_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        env |= {"REFLECTOR_PRICE": "1/1", "MEMORY_TIMEZONE": "UTC"}
        broke = env | {"MEMORY_DAILY_BUDGET_USD": "0"}
        summary = memory_json(tmp_path, *call, env=broke)
        waiting = memory_json(tmp_path, "status", env=broke)["reflections_waiting"]
        told = memory(tmp_path, "status", env=broke).stdout
        assert not server.requests and "MEMORY_DAILY_BUDGET_USD" in told and "reflections waiting" in told
        memory_json(tmp_path, *call, env=env)
        after = memory_json(tmp_path, "status", env=env)
    assert summary["checks"]["failing"]["reflections/no_silent_zero"] == summary["days"] == list(waiting)
    assert summary["days_unfinished"] == summary["days"]
    assert after["reflections_waiting"] == {} and after["model_calls_today"] >= len(waiting) == 3


@pytest.mark.slow
def test_a_dead_model_is_one_sentence_and_what_was_finished_stays(tmp_path: Path) -> None:
    def dying(asked: Asked) -> Any:
        return quoting(asked) if len(server.requests) < 4 else Fail(503, "gone fishing")

    with openai_server(dying) as server:
        env = environment(server, MEMORY_MODEL_CONCURRENCY="1")
        result = memory(tmp_path, "run", "--all", "--sessions", str(EXAMPLE), env=env)
    assert result.returncode == 1
    assert "The model did not answer in 1 try" in result.stderr and "gone fishing" in result.stderr
    assert "Traceback" not in result.stderr
    assert lake(tmp_path).read("segments")["dedupe_key"].n_unique() == 3
    with openai_server(quoting) as later:
        summary = memory_json(tmp_path, "run", "--all", "--sessions", str(EXAMPLE), env=environment(later))
        assert len(later.requests) == 4 - 3
    assert summary["failure"] is None


@pytest.mark.slow
def test_over_budget_the_run_says_what_is_left_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    call = ("run", "--all", "--sessions", str(EXAMPLE))
    with openai_server(lambda asked: Say(quoting(asked), tokens=(3_000, 1_000))) as server:
        price = {"OBSERVER_PRICE": "1/1", "MEMORY_MODEL_CONCURRENCY": "1"}
        env = environment(server, MEMORY_DAILY_BUDGET_USD="0.02", **price)
        summary = memory_json(tmp_path, *call, env=env)
        paid = len(server.requests)
        assert 1 <= paid < 4 and summary["failure"] is None
        assert summary["windows"] == {"observed": paid, "left": 4 - paid, "stored_only": 0}
        assert 0 < summary["spent_usd"] <= 0.02 and "observations/no_silent_zero" in summary["checks"]["failing"]
        text = memory(tmp_path, *call, env=env).stdout
        assert f"{4 - paid} left for later" in text and len(server.requests) == paid
        summary = memory_json(tmp_path, *call, env=environment(server, **price))
        assert len(server.requests) == 4 and summary["windows"]["left"] == 0


@pytest.mark.slow
def test_a_missing_key_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    env = {"OBSERVER_MODEL": "openai:gpt-5-mini"}
    result = memory(tmp_path, "run", "--all", "--sessions", str(EXAMPLE), env=env)
    assert result.returncode == 1 and "OPENAI_API_KEY" in result.stderr and "Traceback" not in result.stderr


def test_estimating_for_a_person(tmp_path: Path) -> None:
    with openai_server(quoting) as server:
        result = memory(tmp_path, "run", "--estimate", "--all", "--sessions", str(EXAMPLES), env=environment(server))
        assert server.requests == []
    assert result.returncode == 0, result.stderr
    assert "No model was called" in result.stdout
    assert "OPENAI" not in result.stdout
    broke = {"OBSERVER_MODEL": "openai:gpt-5-mini", "MEMORY_DAILY_BUDGET_USD": "0"}
    assert (
        "never completes"
        in memory(tmp_path, "run", "--estimate", "--all", "--sessions", str(EXAMPLES), env=broke).stdout
    )
    nothing = memory(tmp_path, "run", "--estimate", "--all", "--sessions", str(EXAMPLES))
    assert "No model is set for observations (OBSERVER_MODEL)" in nothing.stdout
    assert "No model is set for reflections (REFLECTOR_MODEL)" in nothing.stdout
    assert "Distillations are made without a model and cost nothing." in nothing.stdout
    reflecting = memory(
        tmp_path,
        "run",
        "--estimate",
        "--all",
        "--sessions",
        str(EXAMPLES),
        env={"REFLECTOR_MODEL": "openai:gpt-5-mini"},
    )
    assert "reflections" in reflecting.stdout and "by hand" in reflecting.stdout
    unknown = {"OBSERVER_MODEL": "my-model -p"}
    unpriced = memory(tmp_path, "run", "--estimate", "--all", "--sessions", str(EXAMPLES), env=unknown)
    assert "unknown" in unpriced.stdout and "OBSERVER_PRICE" in unpriced.stdout
