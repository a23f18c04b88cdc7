"""Friction that recurs: what counts as a sign, and which signs are one pattern."""

import pytest

from memory_pipeline.friction.clustering import Cluster, corrections, failures
from memory_pipeline.friction.patterns import FrictionEvent, error_line, kind_of_failure, signature
from memory_pipeline_tests.rows import DAY, FakeEncoder, at, day_after

ENCODER = FakeEncoder("uv", "friday", "tests")


def event(text: str, session: str, *, ago: int = 0, tool: str | None = None) -> FrictionEvent:
    day = day_after(-ago)
    name = f"{text}/{session}/{ago}"
    return FrictionEvent(name, day, session, at(day=day), text, ((name, 0, len(text)),), tool)


def corrected(*events: FrictionEvent, memory: tuple[str, ...] = (), vectors: bool = True) -> list[Cluster]:
    return corrections(events, {s.event_id: ENCODER.vector(s.text) for s in events} if vectors else {}, memory)


NO_PIP, UV_PLEASE, UV_AGAIN = "No, uv, not pip.", "Please use uv.", "uv! I said it before."


def test_the_same_correction_in_three_sessions_is_one_pattern() -> None:
    events = [
        event(NO_PIP, "s1", ago=2),
        event(UV_PLEASE, "s2", ago=1),
        event(UV_AGAIN, "s3"),
        event(UV_AGAIN, "s1", ago=3),
    ]
    (cluster,) = corrected(*events)
    assert (cluster.kind, cluster.target_file) == ("repeated_correction", "MEMORY.md")
    assert cluster.title == UV_AGAIN  # the newest words
    assert UV_AGAIN in cluster.change
    assert (cluster.sessions, len(cluster.members)) == (3, 4)
    assert [m.day for m in cluster.members] == [day_after(-3), day_after(-2), day_after(-1), DAY]  # oldest first
    assert cluster.severity == 4 * 3.0  # occurrences times what a correction costs
    assert cluster.confidence == pytest.approx(2 / 3)


def test_the_order_of_signs_does_not_matter() -> None:
    events = [event(NO_PIP, "s1", ago=2), event(UV_PLEASE, "s2", ago=1), event("friday", "s3"), event("friday!", "s4")]
    assert corrected(*events) == corrected(*reversed(events))


@pytest.mark.parametrize("times", [1, 2, 9])
def test_one_session_is_no_pattern_however_often_it_was_said(times: int) -> None:
    assert corrected(*(event(UV_PLEASE, "s1", ago=i) for i in range(times))) == []


def test_different_corrections_are_no_pattern() -> None:
    assert corrected(event(UV_PLEASE, "s1"), event("Never on a friday.", "s2"), event("Run the tests.", "s3")) == []


def test_without_vectors_words_decide() -> None:
    events = [event("Use uv, not pip, here.", "s1"), event("Again: use uv, not pip.", "s2"), event("No emojis.", "s3")]
    (cluster,) = corrected(*events, vectors=False)
    assert cluster.sessions == 2


def test_a_rule_that_is_remembered_and_still_broken_is_stale_memory() -> None:
    events = [event("Use uv, not pip.", "s1", ago=1), event("Use uv, not pip!", "s2")]
    (cluster,) = corrected(*events, memory=("Indent with tabs.", "Use uv, never pip."))
    assert (cluster.kind, cluster.target_file) == ("stale_memory", "AGENTS.md")
    assert "Use uv, never pip." in cluster.title
    assert "Use uv, never pip." in cluster.change
    assert cluster.severity == 2 * 4.0  # it annoys more than what was never written down
    (new,) = corrected(*events, memory=("Indent with tabs.",))
    assert new.kind == "repeated_correction"


USE_PNPM, USE_NPM = "Use pnpm for the frontend.", "Use npm instead of pnpm for the frontend."


def test_a_changed_mind_is_no_pattern() -> None:
    """Though both lines share most of their words, and though the first was said twice."""
    assert corrected(event(USE_PNPM, "s1", ago=2), event(USE_NPM, "s2"), vectors=False) == []
    assert (
        corrected(event(USE_PNPM, "s1", ago=3), event(USE_PNPM, "s2", ago=2), event(USE_NPM, "s3"), vectors=False) == []
    )


def test_what_holds_since_the_change_is_a_pattern_when_it_is_said_again() -> None:
    events = [
        event(USE_PNPM, "s1", ago=3),
        event(USE_NPM, "s2", ago=2),
        event("No, npm, not pnpm, for the frontend.", "s3"),
    ]
    (cluster,) = corrected(*events, vectors=False)
    assert (cluster.sessions, len(cluster.members)) == (2, 2)
    assert "Use pnpm" not in cluster.change
    assert USE_PNPM not in {m.text for m in cluster.members}


def test_a_line_that_gives_up_a_little_of_another_is_not_it_again() -> None:
    """It does not take its place: the older one says more. Vectors find them alike."""
    older = event("The tests of the billing service run with make check in the uv venv every night.", "s1", ago=1)
    newer = event("Run the tests with tox, not make check.", "s2")
    assert corrected(older, newer) == []
    assert corrected(older, event("Run the tests with make check.", "s2")) != []


@pytest.mark.parametrize(("ago", "patterns"), [(0, 0), (5, 1)])
def test_a_later_decision_ends_a_correction_and_an_earlier_one_does_not(ago: int, patterns: int) -> None:
    """Nobody is told to add a rule that was revoked."""
    events = [event(USE_PNPM, "s1", ago=3), event(USE_PNPM, "s2", ago=2)]
    decision = event("We go with npm rather than pnpm.", "s3", ago=ago)
    assert len(corrections(events, {}, [], [decision])) == patterns
    assert len(corrections(events, {}, [])) == 1


def test_a_remembered_rule_that_the_person_gave_up_is_not_the_one_that_is_broken() -> None:
    events = [event(USE_NPM, "s1", ago=1), event(USE_NPM, "s2")]
    (cluster,) = corrected(*events, memory=(USE_PNPM,))
    assert (cluster.kind, cluster.target_file) == ("repeated_correction", "MEMORY.md")
    assert USE_NPM in cluster.change


def failed(*texts: str, tool: str = "Bash") -> list[Cluster]:
    """Failures, each in a session of its own, a day after the other."""
    return failures([event(text, f"s{i}", ago=len(texts) - i, tool=tool) for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    "texts",
    [
        ("port 8080 already in use", "port 3000 already in use"),  # other numbers
        ("no such file: /tmp/a/b.txt", "no such file: /home/ann/c.py"),  # other paths
        ("cannot find module 'left-pad'", 'cannot find module "react"'),  # other names
        ("object at 0x7f1b481dcdd0 failed", "object at 0x7fcb2655acb0 failed"),  # other addresses
        ("commit deadbeef01 not found", "commit 0123456789abcdef not found"),  # other hashes
        ("took 1.5 s, failed", "took 12.75 s, failed"),
        ("Error: EXIT", "error: exit"),  # other case
        ("\x1b[31merror: exit", "error:   exit"),  # colours and spaces
    ],
)
def test_failures_that_differ_in_what_changes_from_time_to_time_are_one(texts: tuple[str, str]) -> None:
    (cluster,) = failed(*texts)
    assert (cluster.sessions, len(cluster.members)) == (2, 2)
    assert cluster.members[0].text == texts[0]
    assert cluster.title == f"Bash: {' '.join(texts[1].split())}"  # as it was the last time


@pytest.mark.parametrize(
    "texts",
    [
        ("permission denied", "connection refused"),
        ("error: exit", "error: killed"),
    ],
)
def test_other_failures_are_others(texts: tuple[str, str]) -> None:
    assert failed(*texts) == []


def test_the_same_failure_under_another_harness_name_of_the_tool_is_the_same() -> None:
    (cluster,) = failures([event("error: exit", "s1", tool="Bash"), event("error: exit", "s2", tool="shell")])
    assert cluster.sessions == 2


def test_one_session_that_fails_again_and_again_is_no_pattern() -> None:
    assert failures([event("error: exit", "s1", ago=i, tool="Bash") for i in range(9)]) == []


@pytest.mark.parametrize(
    ("text", "kind", "impact"),
    [
        ("File has not been read yet. Read it first.", "tool_misuse", 1.0),  # the agent's own doing
        ("oldString not found in file", "tool_misuse", 1.0),
        ("error: unknown option --fast", "tool_misuse", 1.0),
        ("bash: rg: command not found", "configuration_drift", 2.0),  # the machine's
        ("ModuleNotFoundError: No module named 'yaml'", "configuration_drift", 2.0),
        ("Error: listen EADDRINUSE: address already in use :::3000", "configuration_drift", 2.0),
        ("permission denied", "configuration_drift", 2.0),
        ("AssertionError: 3 != 4", "recurring_failure", 2.0),  # anything else
    ],
)
def test_the_kind_of_a_failure_and_what_it_costs(text: str, kind: str, impact: float) -> None:
    assert kind_of_failure(text) == kind
    (cluster,) = failed(text, text, text)
    assert (cluster.kind, cluster.severity) == (kind, 3 * impact)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ok 1\nok 2\nError: port in use\nbye", "Error: port in use"),  # the line that tells
        ("first\n\n  last  \n", "last"),  # else the last one
        ("", None),
        (" \n\n", None),
        ("The user doesn't want to proceed with this tool use.", None),  # refused, not failed
        ("[Request interrupted by user for tool use]\nError: stopped", None),
        ("Command rejected by user", None),
        ("Error: sibling tool call errored", None),  # another call of the same turn failed
    ],
)
def test_the_line_that_tells_what_went_wrong(text: str, line: str | None) -> None:
    assert error_line(text) == line


def test_a_signature_is_short_however_long_the_line_is() -> None:
    assert len(signature("error " * 10_000)) <= 160
