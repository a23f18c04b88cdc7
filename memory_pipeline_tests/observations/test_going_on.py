"""A session that goes on: only its new end is asked for and paid, and what was observed before keeps its ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import polars as pl
import pytest

from memory_pipeline.observations.estimate import estimate_day
from memory_pipeline.observations.model.observer import MESSAGES_BEFORE, LanguageModelObserver
from memory_pipeline.observations.stage import observer_of
from memory_pipeline.settings import Settings
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.conftest import Entry, assistant, compaction, user
from memory_pipeline_tests.llm.openai_server import Asked, OpenAIServer, Say, openai_server
from memory_pipeline_tests.sessions.machine import Machine

pytestmark = pytest.mark.usefixtures("only_two_stages")

DAY = date(2025, 3, 3)
SERVICES = ("parcels", "invoices", "ledger", "stock", "returns", "labels", "routes", "depots", "drivers", "claims")


def talk(first: int, last: int) -> list[Entry]:
    """Turns of a user and a model, two minutes each, every one about a service of its own."""
    said: list[Entry] = []
    for n in range(first, last):
        service = f"{SERVICES[n % len(SERVICES)]}-{n}"
        at = f"2025-03-03T{9 + n // 30:02}:{2 * (n % 30):02}:00"
        later = f"2025-03-03T{9 + n // 30:02}:{2 * (n % 30) + 1:02}:00"
        said.append(user(at, f"Always deploy {service} with the script of its own folder.", f"u{n}"))
        said.append(assistant(later, f"I deployed {service} with its script. Shall I go on with the next?", f"a{n}"))
    return said


def answer(asked: Asked) -> Say:
    """A segment with a fact for each message of the user that the transcript shows; counted as what was sent."""
    transcript = re.search(r"<(transcript-\w+)>\n(.*)\n</\1>", asked.prompt, re.S)
    assert transcript
    shown = re.findall(r"^\[#(\d+) (\d\d:\d\d) user\]\n(.+)$", transcript[2], re.M)
    numbers = [int(n) for n in re.findall(r"^\[#(\d+) ", transcript[2], re.M)]
    facts = "\n".join(f"* 🔴 rule ({clock}) [#{n}] {text}" for n, clock, text in shown)
    text = (
        f'<observations>\n<segment from="#{numbers[0]}" to="#{numbers[-1]}">\n<title>Deploying</title>\n'
        f"<narrative>Services were deployed.</narrative>\n<facts>\n{facts}\n</facts>\n</segment>\n</observations>"
    )
    return Say(text, tokens=(estimate(asked.prompt), estimate(text)))


@pytest.fixture
def by_model(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[[OpenAIServer], Machine]:
    def make(server: OpenAIServer) -> Machine:
        for name, value in {
            "OPENAI_API_KEY": "sk-test",
            "OBSERVER_MODEL": "openai:scripted",
            "OBSERVER_BASE_URL": server.url,
            "MEMORY_MODEL_RETRIES": "0",
            "MEMORY_DAILY_BUDGET_TOKENS": "10000000",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(Settings, "observation_budget", 0.5)
        return machine

    return make


ByModel = Callable[[OpenAIServer], Machine]


def observed(machine: Machine) -> dict[str, dict[str, Any]]:
    return {row["observation_id"]: row for row in machine.rows("observations", DAY)}


def numbers_in(asked: Asked, fence: str) -> list[int]:
    """The numbers of the messages between the marks."""
    found = re.search(rf"<({fence}-\w+)>\n(.*)\n</\1>", asked.prompt, re.S)
    return [int(n) for n in re.findall(r"^\[#(\d+) ", found[2], re.M)] if found else []


def sent(machine: Machine) -> list[int]:
    """Tokens sent with each call that was paid."""
    calls = machine.lake.read("ledger").filter(~pl.col("cached"), stage="observations").sort("asked_at")
    return calls["input_tokens"].to_list()


def test_only_the_new_end_is_sent_and_paid(by_model: ByModel) -> None:
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 40))
        machine.run()
        before, segments = observed(machine), machine.rows("segments", DAY)
        assert len(before) >= 20
        machine.write("s.jsonl", *talk(0, 45))
        machine.run()
        first, second = server.requests
    assert numbers_in(first, "transcript") == list(range(1, 81))
    assert numbers_in(second, "transcript") == list(range(81, 91))
    assert numbers_in(second, "before-transcript") == list(range(81 - MESSAGES_BEFORE, 81))
    assert "Always deploy parcels-0 with" not in second.prompt.split("<earlier-", 1)[0]
    paid = sent(machine)
    assert paid == [estimate(first.prompt), estimate(second.prompt)]
    after = observed(machine)
    assert {key: after[key] for key in before} == before
    assert {row["text"] for key, row in after.items() if key not in before} == {
        f"Always deploy {SERVICES[n % 10]}-{n} with the script of its own folder." for n in range(40, 45)
    }
    mine = sorted(machine.rows("segments", DAY), key=lambda s: s["position"])
    assert mine[: len(segments)] == segments
    assert [(s["first_message_id"], s["position"]) for s in mine][len(segments) :] == [
        (machine.rows("messages", DAY)[80]["message_id"], len(segments))
    ]


def test_another_session_of_the_day_does_not_have_it_asked_again(by_model: ByModel) -> None:
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        machine.write("s.jsonl", *talk(0, 8))
        machine.run()
        before = observed(machine)
        for path in (machine.settings.workspace / "answers").rglob("*.json"):
            path.unlink()  # not even the answers that are kept are needed
        texts = [f"The report about {name} goes to the office on floor {n}." for n, name in enumerate(SERVICES)]
        machine.write("other.jsonl", *[user(e.at, text, text) for e, text in zip(talk(0, 5), texts, strict=True)])
        machine.run()
        assert [texts[0] in asked.prompt for asked in server.requests] == [False, False, True]
    assert {key: row for key, row in observed(machine).items() if row["session_id"] == "s"} == before


def test_a_day_that_fell_short_is_paid_once_and_its_other_sessions_not_again(by_model: ByModel) -> None:
    """Four messages on the first day, one a week later: the first day is observed then, for the one session."""
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("other.jsonl", *talk(0, 6))
        short = [
            user(f"2025-03-03T15:0{n}:00", f"The label printer {n} stands in hall {n}.", f"p{n}") for n in range(4)
        ]
        machine.write("short.jsonl", *short)
        machine.run()
        before = observed(machine)
        assert len(server.requests) == 1  # what is said in the short session is quoted
        machine.write("short.jsonl", *short, user("2025-03-10T09:00", "The fifth printer stands in hall 5.", "p5"))
        machine.run()
        shown = [("label printer 0" in asked.prompt, "fifth printer" in asked.prompt) for asked in server.requests]
        assert sorted(shown[1:]) == [(False, True), (True, False)]
        assert machine.due() == []
    after = observed(machine)
    others = [{k: row for k, row in rows.items() if row["session_id"] == "other"} for rows in (before, after)]
    assert others[0] == others[1]
    assert {row["session_id"] for row in after.values()} == {"other", "short"}


def test_what_was_taken_back_and_all_after_it_is_observed_anew(by_model: ByModel) -> None:
    """The user goes back to the fourth turn of six: what the segment held is not known any more."""
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        machine.write("s.jsonl", *talk(0, 10))
        machine.run()
        kept = {row["text"] for row in observed(machine).values()}
        cut = [*talk(0, 8), *talk(12, 16)]  # turns 8 and 9 are gone, others came
        machine.write("s.jsonl", *cut)
        machine.run()
        last = server.requests[-1]
    assert numbers_in(last, "transcript") == list(range(13, 25))  # the first segment stands, the second does not
    texts = {row["text"] for row in observed(machine).values()}
    assert not [t for t in texts if "claims-9 " in t or "drivers-8 " in t] and [t for t in kept if "claims-9 " in t]
    assert [t for t in texts if "routes-6 " in t] and [t for t in texts if "-15 " in t]


@pytest.mark.parametrize(("name", "value"), [("OBSERVER_MAX_OUTPUT_TOKENS", "7000"), ("OBSERVER_TEMPERATURE", "0.7")])
def test_with_another_setting_all_is_observed_anew(
    name: str, value: str, by_model: ByModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        monkeypatch.setenv(name, value)
        machine.write("s.jsonl", *talk(0, 8))
        machine.run()
        assert numbers_in(server.requests[-1], "transcript") == list(range(1, 17))


def test_a_compaction_pays_nothing_again(by_model: ByModel) -> None:
    """It makes another window of the same messages."""
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        before = observed(machine)
        machine.write("s.jsonl", *talk(0, 8), compaction("2025-03-03T12:00", kept="u7"))
        machine.run()
        shown = [numbers_in(asked, "transcript") for asked in server.requests]
    assert shown[0] == list(range(1, 13)) and shown[1] == [13, 14]
    after = observed(machine)
    assert set(before) <= set(after)
    keys = {w["trigger"]: w["dedupe_key"] for w in machine.rows("windows", DAY)}
    assert {after[key]["dedupe_key"] for key in before} == {keys["compaction"]}
    assert {s["dedupe_key"] for s in machine.rows("segments", DAY)} == set(keys.values())


def test_over_budget_the_rows_of_before_stay_and_the_rest_comes_later(
    by_model: ByModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        before = observed(machine)
        monkeypatch.setenv("MEMORY_DAILY_BUDGET_TOKENS", f"{sum(sent(machine)) + 10}")
        machine.write("s.jsonl", *talk(0, 8))
        machine.run(DAY)
        assert (len(server.requests), observed(machine)) == (1, before)
        monkeypatch.setenv("MEMORY_DAILY_BUDGET_TOKENS", "10000000")
        machine.run(DAY)
        assert numbers_in(server.requests[-1], "transcript") == [13, 14, 15, 16]
    assert set(before) < set(observed(machine))


def test_an_answer_that_could_not_be_used_is_asked_for_again_with_the_new_end(by_model: ByModel) -> None:
    turns: list[Any] = ["I am sorry.", "I am sorry.", answer]

    def script(asked: Asked) -> Any:
        turn = turns.pop(0)
        return turn(asked) if callable(turn) else turn

    with openai_server(script) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run(DAY)
        machine.write("s.jsonl", *talk(0, 7))
        machine.run(DAY)
        assert numbers_in(server.requests[-1], "transcript") == list(range(1, 15))
    assert len(observed(machine)) == 7


def test_an_earlier_fact_that_the_new_end_settles_is_marked_and_keeps_its_id(by_model: ByModel) -> None:
    def script(asked: Asked) -> Say:
        said = answer(asked)
        return Say(f"{said.text}\n<ended>o1</ended>", tokens=said.tokens) if "<earlier-" in asked.prompt else said

    with openai_server(script) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 6))
        machine.run()
        before = observed(machine)
        machine.write("s.jsonl", *talk(0, 8))
        machine.run()
    after = observed(machine)
    ended = [key for key in before if after[key] != before[key]]
    assert len(ended) == 1
    assert (after[ended[0]]["priority"], after[ended[0]]["flags"]) == ("low", ["ended"])


def test_an_estimate_counts_the_new_end_alone(by_model: ByModel) -> None:
    with openai_server(answer) as server:
        machine = by_model(server)
        machine.write("s.jsonl", *talk(0, 40))
        whole = estimated(machine)
        machine.run()
        assert estimated(machine).input_tokens == 0
        machine.write("s.jsonl", *talk(0, 45))
        end = estimated(machine)
        machine.run()
        assert len(server.requests) == 2
    assert (whole.calls, whole.answered, end.calls, end.answered) == (1, 0, 2, 1)
    assert end.input_tokens < whole.input_tokens


def estimated(machine: Machine) -> Any:
    from memory_pipeline.planning import Stages
    from memory_pipeline.stages import bring_up_to_date

    stages = Stages.from_settings(machine.settings)
    stages.sessions.look()
    bring_up_to_date(stages.sessions, machine.lake, DAY)
    observer = observer_of(Workspace(machine.settings, machine.lake))
    assert isinstance(observer, LanguageModelObserver)
    return estimate_day(machine.lake, DAY, observer)


def order(rows: Sequence[dict[str, Any]]) -> list[Any]:
    return sorted(rows, key=repr)


def test_the_extractive_observer_is_given_the_whole_window(machine: Machine) -> None:
    machine.write("s.jsonl", *talk(0, 6))
    machine.run()
    assert {row["basis"] for row in machine.rows("segments", DAY)} == {None}
    machine.write("s.jsonl", *talk(0, 8))
    machine.run()
    grown = machine.rows("observations", DAY)
    machine.write("s.jsonl", *talk(0, 8))
    assert order(machine.rows("observations", DAY)) == order(grown)
