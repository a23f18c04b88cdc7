"""The examination of `memory setup`: what bad models do is named, and careful answers pass."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.small_models import examined_again, recordings
from memory_pipeline.cli.examining import examine_before_a_run
from memory_pipeline.cli.main import app
from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm import found
from memory_pipeline.llm.found import SERVERS, Server
from memory_pipeline.observations.examination import LABELS, result_of
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import observer_of
from memory_pipeline.settings import load_settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.terminal import Terminal
from memory_pipeline_tests.llm.machine import emptied
from memory_pipeline_tests.llm.openai_server import Asked, Fail, Say, openai_server

CAREFUL = {
    "offset pagination": ("🔴", "correction", "The parcels api uses cursor pagination everywhere, never offsets."),
    "must return 404": ("🔴", "rule", "The parcels API must return 404, not 403, for foreign parcels."),
    "timestamps in api": ("🔴", "rule", "All timestamps in api responses are UTC, ISO 8601 with a Z."),
    "the web ui": ("🔴", "rule", "The web ui converts timestamps to local time, the api never does."),
    "for 90 days": ("🔴", "decision", "Tracking events are kept for 90 days, deleted at night in batches of 5000."),
    "replaced black": ("🔴", "state_change", "black and flake8 were replaced by ruff."),
    "run ruff format": ("🔴", "rule", "Run ruff format and ruff check before you say a change is done."),
    "PR 71 is open": ("🟡", "progress", "PR 71 is open from feat/parcel-events."),
    "maybe later": ("🟢", "statement", "Webhooks for customers are maybe offered later, not now."),
}
"""What a careful reader keeps, by the words that say it."""


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = emptied(tmp_path, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return folder


def in_tags(lines: list[str], title: str = "The API of parcels", narrative: str = "Rules were laid down.") -> str:
    facts = "\n".join(lines)
    return (
        f"<observations>\n<segment>\n<title>{title}</title>\n<narrative>{narrative}</narrative>\n<facts>\n{facts}\n"
        "</facts>\n</segment>\n</observations>"
    )


def found_in(asked: Asked) -> list[tuple[int, str, str, str]]:
    """The careful facts of what is shown, with the numbers of their messages."""
    messages = re.split(r"^\[#(\d+) [^\n]*\]\n", asked.prompt, flags=re.M)
    shown = list(zip(messages[1::2], messages[2::2], strict=True))
    return [
        (next(int(number) for number, text in shown if cue in text), *fact)
        for cue, fact in CAREFUL.items()
        if any(cue in text for _, text in shown)
    ]


def careful(asked: Asked) -> str:
    return in_tags([f"* {mark} {kind} [#{number}] {text}" for number, mark, kind, text in found_in(asked)])


def careful_json(asked: Asked) -> str:
    names = {"🔴": "high", "🟡": "medium", "🟢": "low"}
    facts = [
        {"priority": names[mark], "kind": kind, "places": [n], "text": text} for n, mark, kind, text in found_in(asked)
    ]
    return json.dumps({"segments": [{"title": "The API", "narrative": "Rules were laid down.", "facts": facts}]})


def copying(asked: Asked) -> str:
    """The format's own words beside what was said."""
    narrative = "1 to 3 sentences: what was wanted, what was done, how it ended."
    facts = [f"* 🔴 rule [#{i}] {fact[3]}" for i, fact in enumerate(found_in(asked), 1)]
    return in_tags([*facts, "* 🔴 rule [#9] up to 8 words"], "up to 8 words", narrative)


def repeating(asked: Asked) -> Say:
    """Three sentences under a number that counts on, until the tokens are used up."""
    said = ["The parcels api uses cursor pagination everywhere.", "All timestamps in api responses are UTC."]
    said += ["The parcels API must return 404 for foreign parcels."]
    lines = [f"* 🔴 rule [#{n}] {said[n % 3]}" for n in range(1, 40)]
    return Say(in_tags(lines).partition("</facts>")[0], finish="length")


def all_high(asked: Asked) -> str:
    """What was said, and what was done on the way, all of it as high rules."""
    done = re.findall(r"^\[#(\d+) \d\d:\d\d assistant\]\n(\w[^\n]{20,150})", asked.prompt, re.M)
    lines = [f"* 🔴 rule [#{number}] {text}" for number, _, _, text in found_in(asked)]
    return in_tags([*lines, *(f"* 🔴 rule [#{number}] {text}" for number, text in done)])


def poor(asked: Asked) -> str:
    return in_tags([f"* 🟡 {kind} [#{number}] {text}" for number, _, kind, text in found_in(asked)[:1]])


def junk(asked: Asked) -> str:
    """What was said, among more than nobody needs."""
    shown = re.findall(r"^\[#(\d+) [^\n]*\]\n([^\n]{20,150})", asked.prompt, re.M)
    lines = [f"* {mark} {kind} [#{number}] {text}" for number, mark, kind, text in found_in(asked)[:3]]
    return in_tags([*lines, *(f"* 🟢 progress [#{number}] Looked at {said[:40]}" for number, said in shown)])


PROSE = "Sure! The user and the assistant talked about an API for parcels, and all went well in the end."
Answering = Callable[[Asked], Say | Fail | str]


def examined(answers: Any, *args: str, context: int = 32_000) -> tuple[Result, list[Asked]]:
    env = {"MEMORY_EFFECTIVE_CONTEXT": str(context)}
    with openai_server(answers) as server:
        env |= {"OPENAI_BASE_URL": server.url}
        result = CliRunner(env=env).invoke(app, ["setup", *(args or ("--exam", "openai:local"))])
    return result, server.requests


# --- verdicts ---


@each("context", [32_000, 200_000])
@each("answers", [careful, careful_json])
def test_careful_answers_pass(answers: Answering, context: int) -> None:
    result, requests = examined(answers, context=context)
    assert result.exit_code == 0, result.output
    told = re.search(r"openai:local passed the examination: recall (\S+) \(quotes (\S+)\), junk (\S+) ", result.stdout)
    assert told and float(told[1]) >= float(told[2]) and float(told[3]) < 0.1, result.stdout
    assert len(requests) == (1 if context > 32_768 else 3)


@pytest.mark.slow
@each(
    ("answers", "reason"),
    [
        (copying, r"It copies the format of the answer, \d+ times, instead of filling it in\."),
        (repeating, r"It repeats itself\."),
        (all_high, r"It marks everything as high"),
        (lambda asked: PROSE, r"Its answer cannot be used"),
        (lambda asked: in_tags([]), r"Its answer has no facts"),
        (poor, r"It finds 0\.\d\d of the facts; quotes without a model find 0\.\d\d\."),
        (junk, r"0\.\d\d of its facts are not worth keeping; of the quotes, 0\.\d\d\."),
    ],
)
def test_a_bad_model_fails_with_the_reason_and_what_else_to_try(answers: Answering, reason: str) -> None:
    result, _ = examined(answers)
    assert result.exit_code == 1 and re.search(reason, result.stderr), result.output
    assert "failed the examination: recall" in result.stdout and "A larger model" in result.stderr

    refused, _ = examined(answers, "--yes", "--model", "openai:local")
    assert refused.exit_code == 1 and refused.stderr.endswith("Nothing was changed.\n")
    assert load_settings().observer.model is None


def test_real_small_models_fail_as_on_the_day_on_which_they_were_asked() -> None:
    recorded = dict(recordings())
    assert recorded
    for name, answers in recorded.items():
        trial = examined_again(answers)
        assert trial.result and trial.result.reason, name
        assert trial.result.recall == pytest.approx(answers["result"]["recall"]), name


def test_the_labels_are_those_of_a_bundled_session_and_quotes_find_some() -> None:
    labels = json.loads(LABELS.read_text())
    session = (EXAMPLES / labels["session"]).read_text().casefold()
    for label in labels["facts"]:
        assert all(any(word in session for word in words.split("|")) for words in label["words"]), label


# --- what becomes of the result ---


def test_a_model_that_failed_is_not_asked_and_status_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OBSERVER_MODEL", "openai:local")
    assert "not examined: `memory setup --exam MODEL`" in CliRunner().invoke(app, ["status"]).stdout
    with openai_server([Fail(500)] * 9) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert CliRunner().invoke(app, ["setup", "--exam", "openai:local"]).exit_code == 1
    assert result_of(load_settings()) is None  # it was not reached, which says nothing of it

    examined(repeating)
    settings = load_settings()
    assert isinstance(observer_of(Workspace(settings, Lake.from_settings(settings))), ExtractiveObserver)
    told = CliRunner().invoke(app, ["status"]).stdout
    assert "failed the examination: recall" in told and "It repeats itself. It is not used." in told
    examine_before_a_run(settings, as_json=True)
    assert "The model failed its examination and is not used" in capsys.readouterr().err

    examined(careful)
    assert "passed the examination: recall" in CliRunner().invoke(app, ["status"]).stdout
    assert not isinstance(observer_of(Workspace(settings, Lake.from_settings(settings))), ExtractiveObserver)

    monkeypatch.setenv("OBSERVER_BASE_URL", "http://127.0.0.1:9/v1")
    assert result_of(load_settings()) is None  # another server may have another model by that name


def test_a_damaged_file_of_results_is_none_and_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVER_MODEL", "openai:local")
    path = load_settings().workspace / "examinations.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{ half")
    assert result_of(load_settings()) is None
    examined(careful)
    result = result_of(load_settings())
    assert result and not result.reason


def test_the_first_run_at_a_terminal_examines_a_model_that_was_set_by_hand(tmp_path: Path, key: Path) -> None:
    with openai_server(repeating) as server:
        env = {"OPENAI_API_KEY": "sk-test", "OBSERVER_MODEL": "openai:local", "OBSERVER_BASE_URL": server.url}
        env |= {"MEMORY_WORKSPACE": str(tmp_path / "w"), "MEMORY_SESSION_DIRS": str(tmp_path / "sessions")}
        env |= {"PATH": str(key), "MEMORY_EFFECTIVE_CONTEXT": "32000", "MEMORY_DEFAULT_SESSION_DIRS": "false"}
        (tmp_path / "sessions").mkdir()
        shutil.copy(EXAMPLES / "claude/af1ffe0d-e8d7-4f49-af6d-114c4a6f188a.jsonl", tmp_path / "sessions")
        asked = []
        for times in (1, 2):
            with Terminal(tmp_path / "home", "run", env=env) as terminal:
                if times == 1:
                    terminal.sees("This model was not examined yet")
                terminal.sees("The model failed its examination and is not used")
                terminal.process.kill()
            asked.append(len(server.requests))
        assert asked[0] == asked[1] > 0


# --- requests ---


def test_a_model_with_little_context_is_held_to_a_short_schema_and_to_what_was_said() -> None:
    _, requests = examined(careful_json)
    for asked in requests:
        assert asked.schema and set(asked.schema["properties"]) == {"segments"} and "JSON object" in asked.system
        assert 1_500 < asked.body["max_tokens"] < 2_500
        assert not {"repeat_penalty", "repetition_penalty", "frequency_penalty"} & set(asked.body)  # nobody knows which


def test_a_server_without_schemas_is_asked_for_tags() -> None:
    result, requests = examined(lambda asked: Fail(400, "unknown field") if asked.schema else careful(asked))
    assert result.exit_code == 0 and "<observations>" in requests[-1].system


def test_a_local_server_is_asked_not_to_repeat_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(careful) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        monkeypatch.setattr(found, "SERVERS", (Server("llama.cpp", port, against_repetition={"repeat_penalty": 1.1}),))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        CliRunner().invoke(app, ["setup", "--exam", "openai:local"])
    assert [asked.body.get("repeat_penalty") for asked in server.requests] == [1.1]


@each(
    ("url", "title"),
    [
        ("http://127.0.0.1:9931/v1", "llama.cpp"),
        ("http://localhost:8080/v1", "llama.cpp"),
        ("http://[::1]:11434/v1", "Ollama"),
        ("http://127.0.0.1:1234/v1", "LM Studio"),
        ("http://127.0.0.1:8000/v1", "vLLM"),
        ("http://10.0.0.1:8000/v1", None),
        ("http://127.0.0.1:99999/v1", None),
        (None, None),
    ],
)
def test_the_kind_of_a_server_is_known_by_its_port(
    url: str | None, title: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "SERVERS", SERVERS)
    server = found.server_at(url)
    assert (server and server.title) == title
