"""The judges of the checks: good rows pass, every sort of corrupted row is found."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from memory_pipeline.defs.sessions import judge_windows
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.evaluation import (
    judge_compression,
    judge_evidence,
    judge_highs,
    judge_regurgitation,
    judge_secrets,
    judge_silent_zero,
    judge_specifics,
    judge_timestamps,
)
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import takes_evenly
from memory_pipeline_tests.rows import DAY, Row, day_after, observation, put, say, workspace

Judge = Callable[[Lake, Settings, date], Verdict]
JUDGES = (
    *(judge_timestamps, judge_evidence, judge_compression, judge_silent_zero),
    *(judge_specifics, judge_regurgitation, judge_highs, judge_secrets),
)
TURNS = (
    "user: Never deploy on a Friday at 16:30, because nobody is there to watch it.",
    "assistant: The root cause was a stale lock file in /var/run/worker.pid that nobody removed.",
    "tool!: Error: exit 1",
    "user: From now on we always use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)


def observed(folder: Path) -> tuple[Settings, Lake]:
    """A day of one session with what the extractive observer makes of it."""
    settings, lake = workspace(folder)
    say(lake, "s1", *TURNS)
    bring_up_to_date(ObservationsStage(Workspace(settings, lake), ExtractiveObserver()), lake, DAY)
    return settings, lake


def corrupt(lake: Lake, change: Callable[[Row], Row], table: str = "observations") -> None:
    """Change the first row of the day's table."""
    first, *rest = lake.read(table, [DAY]).to_dicts()
    lake.replace(table, lake.read(table, [])[:0], [DAY])
    put(lake, table, change(first), *rest)


def test_what_the_observer_makes_passes_every_judge(tmp_path: Path) -> None:
    settings, lake = observed(tmp_path)
    assert lake.read("observations").height >= 3
    verdicts = {judge.__name__: judge(Workspace(settings, lake), DAY) for judge in JUDGES}
    assert {name: v.offenders for name, v in verdicts.items() if not v.passed or v.offenders} == {}
    assert judge_windows(lake, DAY).passed


@each("judge", JUDGES)
def test_a_day_that_nobody_ever_looked_at_passes(tmp_path: Path, judge: Judge) -> None:
    settings, lake = workspace(tmp_path)
    assert judge(Workspace(settings, lake), DAY).passed


@each(
    ("change", "said"),
    [
        (lambda o: {"observed_at": o["observed_at"] + timedelta(minutes=30)}, "09:30 UTC"),  # at no message's time
        (lambda o: {"observed_at": o["observed_at"] + timedelta(seconds=1)}, "09:00 UTC"),  # seconds count too
        (lambda o: {"text": f"(11:59) {o['text']}"}, "11:59"),  # a clock time that nobody said
        (lambda o: {"dedupe_key": "another window"}, "UTC"),  # its window has no messages
    ],
)
def test_an_invented_time_is_found(tmp_path: Path, change: Callable[[Row], Row], said: str) -> None:
    settings, lake = observed(tmp_path)
    corrupt(lake, lambda o: o | change(o))
    verdict = judge_timestamps(Workspace(settings, lake), DAY)
    assert not verdict.passed
    assert verdict.numbers["invented"] == 1
    assert said in verdict.offenders[0]


@each(
    "text",
    [
        "Never at 16:30",  # it was said
        "Decided at 09:03",  # the local time of a message
        "A ratio of 16:9 and the version 12:30:45",  # no clock times at all
    ],
)
def test_a_time_that_was_said_is_no_invention(tmp_path: Path, text: str) -> None:
    settings, lake = observed(tmp_path)
    corrupt(lake, lambda o: o | {"text": text})
    assert judge_timestamps(Workspace(settings, lake), DAY).passed


def test_the_local_time_counts_in_the_configured_zone(tmp_path: Path) -> None:
    _, lake = observed(tmp_path)
    corrupt(lake, lambda o: o | {"text": "Decided at 18:03"})
    tokyo, _ = workspace(tmp_path, timezone="Asia/Tokyo")
    london, _ = workspace(tmp_path, timezone="Europe/London")
    assert judge_timestamps(Workspace(tokyo, lake), DAY).passed  # 09:03 UTC
    assert not judge_timestamps(Workspace(london, lake), DAY).passed


def shifted(o: Row, start: int = 0, end: int = 0) -> Row:
    (span,) = o["evidence"]
    return o | {"evidence": [span | {"start": span["start"] + start, "end": span["end"] + end}]}


@each(
    ("change", "why"),
    [
        (lambda o: shifted(o, 1, 1), "outside"),  # shifted beyond the end of its message
        (lambda o: shifted(o, 0, -1), "differs from its evidence"),  # one character short
        (lambda o: shifted(o, -1), "outside"),  # a negative start must not count from the end
        (lambda o: shifted(o, 0, -1000), "outside"),  # an end before the start
        (lambda o: o | {"evidence": []}, "no evidence"),
        (lambda o: o | {"evidence": [o["evidence"][0] | {"message_id": "gone"}]}, "message gone does not exist"),
        (lambda o: o | {"text": o["text"].replace("Never", "Always")}, "differs from its evidence"),
    ],
)
def test_evidence_that_does_not_carry_its_observation_is_found(
    tmp_path: Path, change: Callable[[Row], Row], why: str
) -> None:
    settings, lake = observed(tmp_path)
    corrupt(lake, change)
    verdict = judge_evidence(Workspace(settings, lake), DAY)
    assert not verdict.passed
    assert verdict.numbers["ungrounded"] == 1
    assert why in verdict.offenders[0]


def test_a_message_that_changed_or_vanished_after_it_was_observed_is_found(tmp_path: Path) -> None:
    settings, lake = observed(tmp_path)
    corrupt(lake, lambda m: m | {"text": m["text"].replace("Friday", "Monday")}, "messages")
    assert not judge_evidence(Workspace(settings, lake), DAY).passed
    lake.replace("messages", lake.read("messages", [])[:0], [DAY])
    assert judge_evidence(Workspace(settings, lake), DAY).numbers["ungrounded"] == lake.read("observations").height


def test_a_model_may_reword_but_not_point_nowhere(tmp_path: Path) -> None:
    settings, lake = observed(tmp_path)
    corrupt(lake, lambda o: o | {"observer": "openai:gpt", "text": "No deployments on Fridays."})
    assert judge_evidence(Workspace(settings, lake), DAY).passed
    corrupt(lake, lambda o: shifted(o, 0, 500))
    assert not judge_evidence(Workspace(settings, lake), DAY).passed


@each(
    ("said", "tokens", "passed"),
    [
        (1000, 100, True),  # a tenth is what the budget aims at
        (1000, 450, True),  # the upper end belongs to the band
        (1000, 451, False),  # copied, not observed
        (1000, 2, True),  # the lower end belongs to the band
        (1000, 1, False),  # nearly everything was lost
        (1000, 0, False),  # lost altogether
        (199, 190, True),  # below 200 tokens said, a ratio means nothing
        (200, 190, False),
    ],
)
def test_the_compression_band(tmp_path: Path, said: int, tokens: int, passed: bool) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: x")
    corrupt(lake, lambda w: w | {"tokens_said": said}, "windows")
    put(lake, "observations", observation("x", tokens=tokens))
    assert judge_compression(Workspace(settings, lake), DAY).passed is passed


def test_what_is_not_observed_does_not_thin_the_ratio(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: " + "word " * 200)
    say(lake, "s2", "user: " + "word " * 20000, observed=False)
    put(lake, "observations", observation("x", tokens=30))
    assert judge_compression(Workspace(settings, lake), DAY).numbers["ratio"] == pytest.approx(30 / 286, abs=0.001)


def test_a_silent_zero_is_found(tmp_path: Path) -> None:
    settings, lake = observed(tmp_path)
    lake.replace("observations", lake.read("observations", [])[:0], [DAY])
    (offender,) = judge_silent_zero(Workspace(settings, lake), DAY).offenders
    assert "none has an observation" in offender


def test_a_window_that_was_forgotten_is_found_although_another_was_observed(tmp_path: Path) -> None:
    settings, lake = observed(tmp_path)
    say(lake, "s2", "user: hello")
    (offender,) = judge_silent_zero(Workspace(settings, lake), DAY).offenders
    assert "has no segment" in offender


@each("observed_too", [True, False])
def test_a_day_without_words_to_observe_is_no_silent_zero(tmp_path: Path, observed_too: bool) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: ok", "assistant: Done.", observed=observed_too)
    bring_up_to_date(ObservationsStage(Workspace(settings, lake), ExtractiveObserver()), lake, DAY)
    assert judge_silent_zero(Workspace(settings, lake), DAY).passed
    assert judge_silent_zero(Workspace(settings, lake), day_after(9)).passed  # nor is a day that nobody ever looked at


@each(
    ("change", "table", "why"),
    [
        (lambda m: m | {"dedupe_key": "nowhere"}, "messages", "is in no window"),
        (lambda m: m | {"message_id": "s1-05-09:00-1"}, "messages", "more than once"),
        (lambda w: w | {"messages": 99}, "windows", "another number of messages"),
        (lambda w: w | {"dedupe_key": "renamed"}, "windows", "is in no window"),
    ],
)
def test_a_message_outside_of_its_window_is_found(
    tmp_path: Path, change: Callable[[Row], Row], table: str, why: str
) -> None:
    _, lake = observed(tmp_path)
    corrupt(lake, change, table)
    assert any(why in offender for offender in judge_windows(lake, DAY).offenders)


def test_a_window_that_is_there_twice_is_found(tmp_path: Path) -> None:
    _, lake = observed(tmp_path)
    put(lake, "windows", *lake.read("windows").to_dicts())
    assert any("window" in o and "more than once" in o for o in judge_windows(lake, DAY).offenders)


def test_times_are_looked_for_once_in_a_long_session(tmp_path: Path) -> None:
    def lake_of(size: int) -> Workspace:
        settings, lake = workspace(tmp_path / f"{size}")
        start = datetime.combine(DAY, time(9), UTC)
        said = [f"We agreed at 09:{n % 60:02d} that step {n} comes next." for n in range(size)]
        say(lake, "s1", *(f"user: {text}" for text in said[:1]))
        (message,) = lake.read("messages", [DAY]).to_dicts()
        moments = [start + timedelta(seconds=n) for n in range(size)]
        put(
            lake,
            "messages",
            *(message | {"message_id": f"m{n}", "text": said[n], "said_at": moments[n]} for n in range(size)),
        )
        rows = [observation(said[n], session="s1") | {"observed_at": moments[n]} for n in range(size)]
        put(lake, "observations", *(row | {"observation_id": f"o{n}"} for n, row in enumerate(rows)))
        return Workspace(settings, lake)

    small, large = lake_of(300), lake_of(1_200)
    assert judge_timestamps(large, DAY).numbers["checked"] == 1_200
    takes_evenly(lambda: judge_timestamps(small, DAY), lambda: judge_timestamps(large, DAY))
