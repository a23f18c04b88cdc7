"""The judges of what a model wrote down, at their borders: zeros, names, copies, priorities and secrets."""

from pathlib import Path

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.evaluation import (
    judge_compression,
    judge_highs,
    judge_invented_times,
    judge_regurgitation,
    judge_secrets,
    judge_silent_zero,
    judge_specifics,
)
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.test_checks import TURNS
from memory_pipeline_tests.rows import DAY, Row, observation, observation_id, put, say, window_key, workspace


def segment(**other: object) -> Row:
    """What a model answered about the window of session s1, in the format."""
    return {
        "day": DAY,
        "segment_id": "s-s1",
        "dedupe_key": window_key("s1"),
        "session_id": "s1",
        "position": 0,
        "narrative": "It was about the worker.",
        "observer": "openai:gpt#12345678",
        "parsed": True,
        "answer": "a1",
    } | other


def answered(folder: Path, *segments: Row) -> tuple[Settings, Lake]:
    """A day of one window with these segments, and no observation."""
    settings, lake = workspace(folder)
    say(lake, "s1", *TURNS)
    put(lake, "segments", *segments)
    return settings, lake


@each(
    ("segments", "why"),
    [
        ([segment()], None),  # a model said that there is nothing worth keeping
        ([segment(), segment(segment_id="s-2", position=1)], None),
        ([], "has no segment"),
        ([segment(parsed=False, problem="The answer is empty.")], "could not be used"),
        ([segment(parsed=False, answer="refused")], "could not be used"),
        ([segment(), segment(segment_id="s-2", position=1, parsed=False)], "could not be used"),
        ([segment(answer=None)], "none has an observation"),  # the extractive observer has no answer to point to
        ([segment(parsed=None, answer=None)], "none has an observation"),  # a row from before there were models
    ],
)
def test_no_observation_is_fine_only_where_a_model_said_so(
    tmp_path: Path, segments: list[Row], why: str | None
) -> None:
    settings, lake = answered(tmp_path, *segments)
    verdict = judge_silent_zero(Workspace(settings, lake), DAY)
    assert verdict.passed is (why is None)
    assert [(why or "") in offender for offender in verdict.offenders] == [True] * bool(why)


@each(
    ("segments", "passed"),
    [
        ([segment()], True),  # a model said that there is nothing worth keeping
        ([segment(parsed=False)], False),
        ([segment(answer=None)], False),  # the extractive observer found nothing in much
    ],
)
def test_nothing_worth_keeping_is_no_bad_compression(tmp_path: Path, segments: list[Row], passed: bool) -> None:
    settings, lake = answered(tmp_path, *segments)
    say(lake, "s2", *TURNS)
    put(lake, "segments", segment(dedupe_key=window_key("s2"), segment_id="s-s2"))
    said = lake.read("windows")["tokens_said"].sum()
    verdict = judge_compression(Workspace(settings, lake), DAY)
    assert verdict.passed is passed
    assert verdict.numbers["of_tokens"] == (0 if passed else said // 2)


@each(
    ("counts", "passed"),
    [
        ([(40, 1)], True),
        ([(2, 1)], True),  # one is a slip, however little was written
        ([(40, 4)], True),
        ([(40, 5)], False),
        ([(3, 2)], False),
        ([(38, 0), (2, 2)], True),  # over the day
        ([(5, 5), (None, None)], False),
        ([(None, None)], True),  # the extractive observer writes none, and rows of before do not tell
        ([(0, 0)], True),
    ],
)
def test_a_model_that_makes_up_times(tmp_path: Path, counts: list[tuple[int | None, int | None]], passed: bool) -> None:
    rows = [segment(segment_id=f"s-{i}", times_written=w, times_invented=n) for i, (w, n) in enumerate(counts)]
    settings, lake = answered(tmp_path, *rows)
    verdict = judge_invented_times(Workspace(settings, lake), DAY)
    assert verdict.passed is passed and bool(verdict.offenders) is not passed
    assert verdict.numbers["invented"] == sum(n or 0 for _, n in counts)


def test_an_answer_that_could_be_saved_in_part_is_no_silent_zero(tmp_path: Path) -> None:
    settings, lake = answered(tmp_path, segment(parsed=False))
    put(lake, "observations", observation("Never deploy on a Friday."))
    assert judge_silent_zero(Workspace(settings, lake), DAY).passed


def test_one_window_without_a_fact_does_not_hide_behind_another_that_was_explained(tmp_path: Path) -> None:
    settings, lake = answered(tmp_path, segment())
    say(lake, "s2", *TURNS)
    put(lake, "segments", segment(dedupe_key=window_key("s2"), segment_id="s-s2", answer=None))
    (offender,) = judge_silent_zero(Workspace(settings, lake), DAY).offenders
    assert "none has an observation" in offender


@each(
    ("text", "flags", "offenders"),
    [
        ("The lock is /var/run/worker.pid.", [], 0),
        ("Use `uv` instead of `pip`.", [], 0),
        ("The lock is /var/run/server.pid.", [], 1),  # nobody said that path
        ("Use uv 0.9.1.", [], 1),
        ("Bash printed it.", [], 0),
        ("It took 42 attempts.", [], 1),
        ("The lock is /var/run/server.pid.", ["ungrounded_specifics"], 0),  # it is flagged: the share decides
        ("The lock is /var/run/server.pid.", ["ungrounded"], 1),  # another flag
    ],
)
def test_names_and_numbers_that_nobody_said_must_be_flagged(
    tmp_path: Path, text: str, flags: list[str], offenders: int
) -> None:
    settings, lake = answered(tmp_path)
    fine = [
        observation(f"Never deploy on a Friday, {word}.")
        for word in ["one", "two", "three", "four", "five", "six", "seven"]
    ]
    put(lake, "observations", *fine, observation("a"), observation("b"), observation(text, flags=flags))
    verdict = judge_specifics(Workspace(settings, lake), DAY)
    assert verdict.passed is not offenders
    assert len(verdict.offenders) == offenders
    is_flagged = "ungrounded_specifics" in flags
    named = {"nobody_said": "/var/run/server.pid"} if is_flagged else {}
    assert verdict.numbers == {"checked": 10, "flagged": int(is_flagged)} | named


@each(
    ("flagged", "of", "passed"),
    [(0, 1, True), (1, 10, True), (1, 9, False), (2, 20, True), (3, 20, False), (1, 1, False)],
)
def test_the_share_of_flagged_observations(tmp_path: Path, flagged: int, of: int, passed: bool) -> None:
    settings, lake = answered(tmp_path)
    flags = [["ungrounded_specifics"] if i < flagged else [] for i in range(of)]
    put(lake, "observations", *(observation("Never" + " deploy" * i, flags=f) for i, f in enumerate(flags)))
    verdict = judge_specifics(Workspace(settings, lake), DAY)
    assert verdict.passed is passed
    told, *named = verdict.offenders or ["", *[""] * flagged]
    assert told == ("" if passed else f"{flagged} of {of} have names or numbers that do not occur in the session")
    assert len(named) == flagged


def test_what_is_quoted_from_markdown_was_said(tmp_path: Path) -> None:
    """A quote loses its emphasis, and so `__init__` its underscores."""
    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: The module is `src/mail/__init__.py`, version **1**.2.", *TURNS)
    put(lake, "observations", observation("The module is `src/mail/init.py`, version 1.2."))
    assert judge_specifics(Workspace(settings, lake), DAY).offenders == []


OUTPUT = " ".join(f"line{n}" for n in range(100))


@each(
    ("text", "passed"),
    [
        (OUTPUT[:159], True),
        (OUTPUT[:160], False),
        (OUTPUT[7:187], False),  # 180 characters are found wherever they begin
        (f"The tool printed: {OUTPUT[7:187]}", False),
        (f"{'x' * 13}{OUTPUT[3:183]}", False),
        (OUTPUT[7:187].replace(" ", "\n  "), False),  # white space does not hide it
        (f"{OUTPUT[:150]} and {OUTPUT[200:350]}", True),  # two stretches, each of them short
    ],
)
def test_a_tools_output_may_be_quoted_and_not_copied(tmp_path: Path, text: str, passed: bool) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", *TURNS, f"tool: begin\n{OUTPUT}")
    put(lake, "observations", observation("Never deploy on a Friday."), observation(text))
    verdict = judge_regurgitation(Workspace(settings, lake), DAY)
    assert verdict.passed is passed
    assert verdict.numbers == {"checked": 2, "repeating": int(not passed)}


@each("turn", [f"user: {OUTPUT}", f"assistant: {OUTPUT}", f"injected: {OUTPUT}"])
def test_what_people_and_the_model_said_may_be_quoted(tmp_path: Path, turn: str) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", turn)
    put(lake, "observations", observation(OUTPUT))
    assert judge_regurgitation(Workspace(settings, lake), DAY).passed


def test_the_output_of_another_window_does_not_count(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: Hello.")
    say(lake, "s2", f"tool: {OUTPUT}")
    put(lake, "observations", observation(OUTPUT))
    assert judge_regurgitation(Workspace(settings, lake), DAY).passed


@each(
    ("high", "of", "passed"),
    [(6, 10, True), (7, 10, False), (4, 4, True), (5, 5, False), (13, 20, True), (14, 20, False), (0, 10, True)],
)
def test_high_is_rare(tmp_path: Path, high: int, of: int, passed: bool) -> None:
    settings, lake = workspace(tmp_path)
    priorities = ["high" if i < high else "medium" for i in range(of)]
    laid_down = observation("Never deploy on a Friday.")  # does not count, since the extractive observer quoted a user
    rules = (observation(f"rule {i}", priority=p, observer="openai:gpt#1") for i, p in enumerate(priorities))
    put(lake, "observations", laid_down, *rules)
    verdict = judge_highs(Workspace(settings, lake), DAY)
    assert verdict.passed is passed
    assert verdict.numbers == {"observations": of, "high": high, "allowed": max(4, of * 2 // 3)}
    highs = [f"{observation_id(f'rule {i}')}: rule {i}" for i in range(high)]
    told, *named = verdict.offenders or ["", *highs]
    assert told == ("" if passed else f"{high} of {of} observations are high")
    assert sorted(named) == sorted(highs)


SECRET = "ghp_" + "Zk4Qw8Rt2Yp6Lm0Nx3Vb7Jc5Hd9Fs1GaTe2U"


def planted(folder: Path, column: str, **settings: object) -> tuple[Settings, Lake]:
    """A day with a secret in that column, of an observation or of a segment."""
    made, lake = workspace(folder, **settings)
    told = f"The token is {SECRET}."
    put(lake, "observations", observation(told if column == "text" else "Never deploy."))
    put(lake, "segments", segment(**{column: told} if column != "text" else {}))
    return made, lake


@each("column", ["text", "narrative", "title", "current_task", "suggested_response", "problem", "observer"])
def test_a_secret_is_found_wherever_it_was_written_down(tmp_path: Path, column: str) -> None:
    settings, lake = planted(tmp_path, column)
    verdict = judge_secrets(Workspace(settings, lake), DAY)
    (offender,) = verdict.offenders
    assert not verdict.passed
    assert offender.endswith(f"has what looks like a secret in its {column}")
    assert SECRET not in offender
    assert verdict.numbers["redaction"] == "True"


def test_marks_of_redacted_secrets_are_none(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    put(
        lake,
        "observations",
        observation("The token is [redacted:github-token:3fa91c]; PASSWORD=[redacted:value:1a2b3c]"),
    )
    verdict = judge_secrets(Workspace(settings, lake), DAY)
    assert (verdict.passed, verdict.numbers["checked"]) == (True, 2)  # its text and who observed it


def test_where_secrets_are_meant_to_be_kept_the_check_says_so(tmp_path: Path) -> None:
    settings, lake = planted(tmp_path, "text", redact=False)
    verdict = judge_secrets(Workspace(settings, lake), DAY)
    assert (verdict.passed, verdict.numbers["redaction"]) == (True, "False")
