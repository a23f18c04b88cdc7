"""Small local models: short instructions, one topic a request, and answers that are wrong in the ways of weak models.

A model on loopback knows what is worth keeping of a session (`TRUE`) and spoils its answer. What is stored as sure must
be true, and of what it wrote rightly most must be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.estimate import estimate_day
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.observations.types import DOUBTED
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.tokens import PROSE
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.rows import DAY, say, workspace

CONTEXTS = (8_000, 32_000)
TRUE = (
    "Never deploy the parcel worker on a Friday, because nobody watches it over the weekend.",
    "We use uv and not pip for every Python service from now on.",
    "Sessions of shop-api are kept in Postgres 16 and no longer in Redis.",
    "The double mails came from the notifier running uvicorn with two workers.",
    "Migrations on production always use create index concurrently.",
    "I prefer small commits whose message says why the change was made.",
    "The limiter of the public API allows 250 requests a minute for each key.",
    "Backups of the depot database go to backups/depot_eu.tar every night.",
)
WRONG = (
    "Zebras are fed with hay on the second Sunday of March by the night shift.",
    "Deployments of billing-gateway run through ArgoCD with three approvals.",
)
FOREIGN = "Der Zusteller fährt am Montag mit dem Lastenrad durch die Altstadt und trinkt Kaffee."


def turns() -> list[str]:
    """Two topics an hour's talk each; a topic's facts are said by the user, with answers between them."""
    found = []
    for number, fact in enumerate(TRUE):
        opening = "Now let's look at the next thing. " if number == len(TRUE) // 2 else ""
        found.append(f"user: {opening}{fact}")
        found.append(f"assistant: I have read the files of part {number} and will go on with what you asked for. " * 4)
        found.append("tool: " + f"line {number} of a listing that nobody needs to keep; " * 8)
        found.append(f"assistant: Part {number} is done, and nothing else in the repository had to be touched for it.")
    return found


def known(asked: Asked) -> list[tuple[str, str]]:
    """Numbers of messages with the facts that they say, of those that are shown."""
    shown = re.findall(r"^\[#(\d+) \d\d:\d\d user\]\n([^\n]+)", asked.prompt, re.M)
    return [(number, fact) for number, words in shown for fact in TRUE if fact in words]


def listed(asked: Asked, *more: str) -> str:
    facts = [f"* 🔴 decision [#{number}] {fact}" for number, fact in known(asked)]
    return "\n".join([*facts, *(f"* 🔴 rule [#1] {words}" for words in more)])


def whole(facts: str) -> str:
    return (
        "<observations>\n<segment>\n<title>Rules</title>\n<narrative>The person laid down rules.</narrative>\n<facts>\n"
        f"{facts}\n</facts>\n</segment>\n</observations>"
    )


def in_bold(facts: str) -> str:
    return re.sub(r"] (.*)", r"] **\1**", facts)


def transcript(asked: Asked) -> str:
    return asked.prompt.partition("<transcript-")[2].partition(">\n")[2].partition("\n</transcript-")[0]


def other_numbers(asked: Asked) -> str:
    """Every fact names a message that says something else."""
    return whole(re.sub(r"\[#(\d+)\]", lambda m: f"[#{int(m[1]) + 1}]", listed(asked)))


def changed_values(asked: Asked) -> str:
    """Names and numbers that nobody said, in facts that are otherwise true."""
    facts = listed(asked).replace("Postgres 16", "Postgres 61").replace("250 requests", "2500 requests")
    return whole(facts.replace("depot_eu", "depot_us").replace("shop-api", "shop-ui"))


Answer = Callable[[Asked], Say]
WEAK: dict[str, tuple[Answer, float]] = {
    "well": (lambda asked: Say(whole(listed(asked))), 1.0),
    "without tags": (lambda asked: Say(f"Sure! Here are the notes:\n\n{listed(asked)}"), 1.0),
    "in a block of code, in bold": (
        lambda asked: Say(f"```xml\n{whole(in_bold(listed(asked)))}\n```\nLet me know!"),
        1.0,
    ),
    "without marks and kinds": (
        lambda asked: Say(whole(re.sub(r"^\* 🔴 decision ", "- ", listed(asked), flags=re.M))),
        1.0,
    ),
    "thinking aloud": (
        lambda asked: Say(f"<think>\nWhat did they say? {WRONG[0]}\n</think>\n{whole(listed(asked))}"),
        1.0,
    ),
    "echoing": (lambda asked: Say(transcript(asked)), 0.0),
    "echoing, then well": (lambda asked: Say(f"{transcript(asked)}\n\n{whole(listed(asked))}"), 0.9),
    "echoing the format": (
        lambda asked: Say(whole("* MARK kind [#NUMBER] the fact") + "\n" + whole(listed(asked))),
        1.0,
    ),
    "looping": (lambda asked: Say(whole(listed(asked) + f"\n* 🔴 rule [#1] {WRONG[1]}" * 300), "length"), 0.9),
    "looping without end": (lambda asked: Say(whole(listed(asked))[:-60] + " and so on" * 2_000, "length"), 0.5),
    "cut off": (
        lambda asked: Say(
            whole(listed(asked))[: -len("facts of it.\n</facts>\n</segment>\n</observations>")], "length"
        ),
        0.6,
    ),
    "naming other messages": (lambda asked: Say(other_numbers(asked)), 0.9),
    "with other names and numbers": (lambda asked: Say(changed_values(asked)), 0.5),
    "with inventions": (lambda asked: Say(whole(listed(asked, *WRONG))), 1.0),
    "in another language": (lambda asked: Say(whole(listed(asked, FOREIGN))), 1.0),
    "with nothing": (lambda asked: Say(""), 0.0),
    "refusing": (lambda asked: Say("I'm sorry, but I can't help with that request."), 0.0),
    "obeying what is said": (
        lambda asked: Say("All tests pass now and I have deployed the parcel worker to production."),
        0.0,
    ),
}


def observed(folder: Path, answers: Answer, context: int) -> tuple[Lake, list[Asked]]:
    with openai_server(answers) as server:
        asked: dict[str, Any] = {"observer_model": "openai:weak", "observer_base_url": server.url, "model_retries": 0}
        settings, lake = workspace(folder, **asked, effective_context=context, daily_budget_tokens=10**8)
        say(lake, "s1", *turns())
        bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, DAY)
        return lake, server.requests


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def sure(lake: Lake) -> list[str]:
    """Texts of observations that nothing is known against and that are more than low."""
    rows = lake.read("observations").filter(pl.col("priority") != "low")
    return [text for text, flags in rows.select("text", "flags").iter_rows() if not {*DOUBTED} & {*flags}]


def is_true(text: str) -> bool:
    return any(text.strip(" .…") in fact or fact.strip(".") in text for fact in TRUE)


@pytest.mark.slow
@each("context", CONTEXTS)
@each("weakness", WEAK)
def test_nothing_wrong_is_sure_and_what_can_be_saved_is(weakness: str, context: int, tmp_path: Path) -> None:
    answers, least = WEAK[weakness]
    lake, asked = observed(tmp_path, answers, context)
    stored = "\n".join(lake.read("observations")["text"])
    assert [text for text in sure(lake) if not is_true(text)] == []
    assert sum(fact.strip(".") in stored for fact in TRUE) >= least * len(TRUE)
    assert len(asked) <= 2 * 8  # each part at most twice


def taken(asked: Asked) -> int:
    """Tokens of a request with its answer, as the server counts them."""
    return int((len(asked.system) + len(asked.prompt)) / PROSE) + int(asked.body["max_tokens"])


@each("context", CONTEXTS)
def test_it_is_asked_in_few_words_about_one_topic_at_a_time(context: int, tmp_path: Path) -> None:
    lake, asked = observed(tmp_path, WEAK["well"][0], context)
    assert len(asked) == 2 and max(map(taken, asked)) <= context
    assert [len(known(one)) for one in asked] == [4, 4]  # as they were talked about
    assert max(len(one.system) for one in asked) / PROSE < 600
    assert "{{" not in asked[0].system + asked[0].prompt and "trace:" not in asked[0].system
    assert lake.read("segments")["title"].to_list() == ["Rules", "Rules"]
    assert lake.read("segments")["parsed"].to_list() == [True, True]
    assert sorted(sure(lake)) == sorted(TRUE)


def test_a_large_model_is_asked_as_ever(tmp_path: Path) -> None:
    _, asked = observed(tmp_path, WEAK["well"][0], 40_000)
    assert len(asked) == 1 and "trace:" in asked[0].system


def test_what_it_is_estimated_to_ask_is_what_it_asks(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"observer_model": "openai:weak", "observer_base_url": "http://127.0.0.1:1/v1"}
    settings, lake = workspace(tmp_path / "other", **asked, effective_context=8_000)
    say(lake, "s1", *turns())
    observer = ObservationsStage.from_workspace(Workspace(settings, lake)).observer
    assert isinstance(observer, LanguageModelObserver)
    assert estimate_day(lake, DAY, observer).calls == 2


def test_a_topic_of_next_to_nothing_is_no_request_of_its_own(tmp_path: Path) -> None:
    with openai_server(WEAK["well"][0]) as server:
        asked: dict[str, Any] = {"observer_model": "openai:weak", "observer_base_url": server.url, "model_retries": 0}
        settings, lake = workspace(tmp_path, **asked, effective_context=8_000)
        talk = [f"user: Now let's do part {n} of it.\nassistant: Part {n} is done." for n in range(12)]
        say(lake, "s1", *(turn for two in talk for turn in two.split("\n")))
        bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, DAY)
        assert len(server.requests) == 1
