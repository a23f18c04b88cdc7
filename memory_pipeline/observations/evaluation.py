"""Checks of a day's observations; `defs/` registers them as asset checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import wraps
from types import MappingProxyType

import polars as pl

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.lake.rows import ObservationRow, SegmentRow, typed_rows
from memory_pipeline.observations.types import EXTRACTIVE, UNGROUNDED, UNGROUNDED_SPECIFICS, WindowTimes, choice_line
from memory_pipeline.redaction import redactor_of
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.text.dates import clock_times
from memory_pipeline.text.priorities import HIGH, LOW
from memory_pipeline.text.sentences import squeeze
from memory_pipeline.text.specifics import Words, missing_specifics
from memory_pipeline.verdict import Verdict, judge_ratio
from memory_pipeline.workspace.workspace import Workspace

BAND = (0.002, 0.45)
"""Allowed range of tokens of the observations per token said. Below it facts were lost; above it text was copied.
The upper end allows for short windows, see `quotes.observer.SHORT_SHARE`."""
MIN_TOKENS_SAID = 200
"""Minimum tokens said for which the ratio is checked."""
MAX_UNGROUNDED = 0.1
"""Maximum share of observations with names or numbers that nobody said."""
STATED_BY_USER = (
    (pl.col("priority") == HIGH) & (pl.col("trust") == "user") & pl.col("observer").str.starts_with(EXTRACTIVE)
)
"""Observations of rules, preferences and decisions that a user stated explicitly."""
MAX_HIGH_SHARE, MIN_HIGH_ALLOWED = 2 / 3, 4
"""Maximum share of high observations, and the number that is always allowed. The highest share on 60 days of real
sessions and the examples is .63."""
MAX_SLIPS, MAX_INVENTED_TIMES = 1, 0.1
"""Invented clock times of a model that are tolerated on a day: one, or this share. One misread time in forty is a slip.
A model that invents one in ten also gives wrong times that match some message by chance, which cannot be detected."""
NO_TIMES = WindowTimes(frozenset(), frozenset())
COPIED, STEP = 160, 20
"""Minimum number of consecutive characters that count as copied from a tool: longer than any error message that must be
quoted verbatim."""


def judge_invented_times(workspace: Workspace, day: date) -> Verdict:
    """A model invents hardly any clock times; those that do not occur in the window are removed before storing.

    Fails when a model invented more than one time, and more than one in ten of the times that it wrote.
    """
    segments = workspace.lake.read("segments", [day]).filter(pl.col("times_invented").is_not_null())
    written, invented = int(segments["times_written"].sum()), int(segments["times_invented"].sum())
    too_many = invented > max(MAX_SLIPS, MAX_INVENTED_TIMES * written)
    offenders = [f"{invented} of {written} clock times were invented"] if too_many else []
    for s in typed_rows(segments.filter(pl.col("times_invented") > 0), SegmentRow) if too_many else ():
        offenders.append(
            f"{s['segment_id']} has {s['times_invented']} of {s['times_written']}, by {s['observer']}; "
            f"its answer is answers/{s['answer']}"
        )
    judged = f"{written} clock times that a model wrote, {invented} of them invented and removed"
    return _verdict(offenders, judged, written=written, invented=invented)


def _verdict(offenders: list[str], judged: str, **numbers: float | int | str) -> Verdict:
    return Verdict(not offenders, numbers, offenders, judged)


def needs_messages(judge: Callable[[Workspace, date], Verdict]) -> Callable[[Workspace, date], Verdict]:
    """The check, which passes for a day whose messages are no longer stored: it compares with their texts."""

    @wraps(judge)
    def judge_if_stored(workspace: Workspace, day: date) -> Verdict:
        if workspace.lake.is_retired("messages", day):
            return Verdict(True, {}, [], "nothing: the text of this day is no longer kept")
        return judge(workspace, day)

    return judge_if_stored


@needs_messages
def judge_timestamps(workspace: Workspace, day: date) -> Verdict:
    """Every time that an observation has or mentions was recorded or said in its window.

    Fails when the time of a row is that of no message, or the row mentions a clock time that nobody said: the row or
    its messages changed after it was written.
    """
    windows = {
        key: WindowTimes.from_messages(frame.select("said_at", "untimed", "text").iter_rows(), workspace.settings.zone)
        for (key,), frame in workspace.lake.read("messages", [day]).partition_by("dedupe_key", as_dict=True).items()
    }
    observations = typed_rows(workspace.lake.read("observations", [day]), ObservationRow)
    offenders = [
        f"{o['observation_id']} has {', '.join(wrong)}: {o['text'][:120]}"
        for o in observations
        if (wrong := invented_times(o, windows.get(o["dedupe_key"], NO_TIMES)))
    ]
    judged = f"{len(observations)} observations with the times that they have or mention"
    return _verdict(offenders, judged, checked=len(observations), invented=len(offenders))


def invented_times(observation: ObservationRow, window: WindowTimes) -> list[str]:
    """Times of the observation that do not occur in its window.

    Its own time must be that of a message, and recorded if that one is; a clock time in its text must occur in the
    window.
    """
    own = (observation["observed_at"], observation["untimed"] is None)
    wrong = [f"{observation['observed_at']:%H:%M} UTC"] if own not in window.moments else []
    return wrong + sorted(clock_times(observation["text"]) - window.spoken)


@needs_messages
def judge_evidence(workspace: Workspace, day: date) -> Verdict:
    """Every observation's evidence spans lie in their messages and contain its words.

    Fails when a quoted message is gone or shorter, a quote differs from its spans, or an observation without evidence
    is not low and flagged: rows were changed after they were written.
    """
    messages = workspace.lake.read("messages", [day])
    texts = dict(messages.select("message_id", "text").iter_rows())
    choices = messages.filter(pl.col("answer_to").is_in(CHOICES), pl.col("answered").is_not_null())
    answered = {m: (to, what) for m, to, what in choices.select("message_id", "answer_to", "answered").iter_rows()}
    observations = typed_rows(workspace.lake.read("observations", [day]), ObservationRow)
    offenders = [f"{o['observation_id']}: {why}" for o in observations if (why := missing_evidence(o, texts, answered))]
    judged = f"{len(observations)} observations with their evidence"
    return _verdict(offenders, judged, checked=len(observations), ungrounded=len(offenders))


def missing_evidence(
    observation: ObservationRow,
    texts: Mapping[str, str],
    answered: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> str | None:
    """Why the evidence does not support the observation, or None.

    `texts` maps message ids to message texts; `answered` maps ids of answers to the kind and text of what they answer.
    Every span must lie in its message. The text of an extractive observation must equal its spans, except for Markdown
    marks and white space; the span of a user's choice may be preceded by the question. Only observations of a model may
    have no evidence, if they are low and flagged.
    """
    if not observation["evidence"]:
        marked = UNGROUNDED in observation["flags"] and observation["priority"] == LOW
        return None if marked else "it has no evidence"
    quoted = []
    for span in observation["evidence"]:
        text = texts.get(span["message_id"])
        if text is None:
            return f"message {span['message_id']} does not exist"
        if not 0 <= span["start"] < span["end"] <= len(text):
            return f"span {span['start']}-{span['end']} is outside of message {span['message_id']}"
        quoted.append(text[span["start"] : span["end"]])
    if observation["observer"].startswith(EXTRACTIVE):
        words = squeeze(" ".join(quoted))
        asked = answered.get(observation["evidence"][0]["message_id"]) if len(quoted) == 1 else None
        if observation["text"] not in (words, asked and choice_line(*asked, words)):
            return "its text differs from its evidence"
    return None


def judge_compression(workspace: Workspace, day: date) -> Verdict:
    """Tokens of the observations per token said are within the allowed range.

    Windows for which a model answered that nothing is worth keeping do not count. Fails when the observations of a day
    take less than 0.2 % or more than 45 % of the tokens said: a model keeps one line of a long day, or copies a
    short one.
    """
    return judge_ratio(*condensed(workspace, day), BAND, MIN_TOKENS_SAID)


def condensed(workspace: Workspace, day: date) -> tuple[int, int]:
    """The tokens of the day's observations, and of the conversation in their windows. Windows for which a model
    answered that nothing is worth keeping, and short sessions, are left out. Explicit statements of a user are kept
    regardless of the budget, so they do not count if they alone would exceed the band."""
    observations = workspace.lake.read("observations", [day])
    nothing_kept = _fully_parsed(workspace.lake.read("segments", [day])) - set(observations["dedupe_key"])
    windows = workspace.lake.read("windows", [day]).filter(
        pl.col("observed"), ~pl.col("dedupe_key").is_in(list(nothing_kept))
    )
    of_these = pl.col("dedupe_key").is_in(windows["dedupe_key"].to_list())
    kept, said = observations.filter(of_these), int(windows["tokens_said"].sum())
    tokens = int(kept["tokens"].sum())
    if tokens > BAND[1] * said:
        tokens -= int(kept.filter(STATED_BY_USER)["tokens"].sum())
    return tokens, said


def _fully_parsed(segments: pl.DataFrame) -> set[str]:
    """Keys of the windows whose answers were all in the format, so that missing facts were left out on purpose."""
    answered = segments.filter(pl.col("parsed") & pl.col("answer").is_not_null())
    return set(answered["dedupe_key"]) - set(segments.filter(~pl.col("parsed"))["dedupe_key"])


def judge_silent_zero(workspace: Workspace, day: date) -> Verdict:
    """A day with windows to observe has observations, or the model answered that nothing is worth keeping.

    Fails when a model refuses or its answer is empty or unusable, the day waits for the model or its budget, or nothing
    was found in windows with 200 or more tokens said.
    """
    windows = workspace.lake.read("windows", [day]).filter(pl.col("observed"))
    segments = workspace.lake.read("segments", [day])
    observed = set(workspace.lake.read("observations", [day])["dedupe_key"]) & set(windows["dedupe_key"])
    explained = _fully_parsed(segments)
    unseen = set(windows["dedupe_key"]) - set(segments["dedupe_key"])
    unusable = set(segments.filter(~pl.col("parsed"))["dedupe_key"]) - observed
    offenders = [f"window {key[:12]} should have been observed but has no segment" for key in sorted(unseen)]
    offenders += [f"window {key[:12]} has an answer that could not be used, and no fact" for key in sorted(unusable)]
    if not windows.is_empty() and workspace.lake.fingerprint("observations", day) == INCOMPLETE:
        awaited = "the model or its budget" if workspace.settings.observer.model else "another run"
        offenders.append(f"the day is not finished: it waits for {awaited}")
    enough = int(windows["tokens_said"].sum()) >= MIN_TOKENS_SAID
    if enough and not observed and set(windows["dedupe_key"]) - explained and not offenders:
        offenders.append(f"{windows.height} windows should have been observed, but none has an observation")
    judged = f"{windows.height} windows to observe, {len(observed)} of them with observations"
    return _verdict(offenders, judged, windows=windows.height, windows_with_observations=len(observed))


@needs_messages
def judge_specifics(workspace: Workspace, day: date) -> Verdict:
    """Names and numbers of observations occur in their windows; the few that do not are flagged.

    Fails when more than one in ten observations of a model has a name, path, version or number that nobody said.
    """
    messages = workspace.lake.read("messages", [day])
    windows = {
        key: Words(filter(None, [*frame["text"], *frame["tool_name"], *frame["answered"]]))
        for (key,), frame in messages.partition_by("dedupe_key", as_dict=True).items()
    }
    observations = typed_rows(workspace.lake.read("observations", [day]), ObservationRow)
    offenders: list[str] = []
    flagged: list[tuple[str, list[str]]] = []
    for o in observations:
        missing = missing_specifics(o["text"], windows.get(o["dedupe_key"], Words([])))
        if UNGROUNDED_SPECIFICS in o["flags"]:
            flagged.append((o["observation_id"], missing))
        elif missing:
            offenders.append(f"{o['observation_id']} has {', '.join(missing)}, not in the session: {o['text'][:120]}")
    names = ", ".join(dict.fromkeys(name for _, missing in flagged for name in missing))
    share = f"{len(flagged)} of {len(observations)} have names or numbers that do not occur in the session"
    if len(flagged) > MAX_UNGROUNDED * len(observations):
        offenders.append(f"{share}: {names}" if names else share)
        gone = "names of a message that is gone"
        offenders += [f"{o} has {', '.join(missing) or gone}" for o, missing in flagged]
    named = {"nobody_said": names} if names else {}
    return _verdict(offenders, f"observations: {share}", checked=len(observations), flagged=len(flagged), **named)


@needs_messages
def judge_regurgitation(workspace: Workspace, day: date) -> Verdict:
    """No observation copies long passages of a tool's output, except for answers that a user gave through a tool.

    Fails when 160 consecutive characters of an observation also occur in a tool's output: a model copies listings, logs
    or code.
    """
    messages = workspace.lake.read("messages", [day])
    tools = messages.filter(pl.col("role") == "tool").partition_by("dedupe_key", as_dict=True)
    outputs = {key: _one_line("\n".join(frame["text"])) for (key,), frame in tools.items()}
    answers = set(messages.filter(pl.col("role") == "user", pl.col("answer_to").is_not_null())["message_id"])
    observations = typed_rows(workspace.lake.read("observations", [day]), ObservationRow)
    offenders = [
        f"{o['observation_id']} repeats the output of a tool: {o['text'][:120]}"
        for o in observations
        if not answers & {span["message_id"] for span in o["evidence"]}
        and any(piece in outputs.get(o["dedupe_key"], "") for piece in _pieces(_one_line(o["text"])))
    ]
    judged = f"{len(observations)} observations compared with the output of tools"
    return _verdict(offenders, judged, checked=len(observations), repeating=len(offenders))


def judge_highs(workspace: Workspace, day: date) -> Verdict:
    """At most two thirds of a day's observations are high, though four are always allowed.

    Fails when a model marks nearly everything as high; explicit statements of a user do not count.
    """
    observations = workspace.lake.read("observations", [day]).filter(~STATED_BY_USER)
    highs = observations.filter(pl.col("priority") == HIGH)
    allowed = max(MIN_HIGH_ALLOWED, int(MAX_HIGH_SHARE * observations.height))
    offenders: list[str] = []
    if highs.height > allowed:
        offenders.append(f"{highs.height} of {observations.height} observations are high")
        offenders += [f"{o}: {text[:120]}" for o, text in highs.select("observation_id", "text").iter_rows()]
    judged = f"{highs.height} of {observations.height} are high; at most {allowed} are allowed"
    return _verdict(offenders, judged, observations=observations.height, high=highs.height, allowed=allowed)


def judge_secrets(workspace: Workspace, day: date) -> Verdict:
    """No stored text looks like a secret. With `MEMORY_REDACT=false` secrets are kept on purpose.

    Fails when a row contains a text that redaction removes: it was written while redaction was off, or before it knew
    this kind of secret.
    """
    redactor = redactor_of(workspace.settings)
    columns = ("text", "narrative", "title", "current_task", "suggested_response", "problem", "observer")
    checked, offenders = 0, []
    for table, name in (("observations", "observation_id"), ("segments", "segment_id")):
        for row in workspace.lake.read(table, [day]).iter_rows(named=True):
            for column in columns:
                text = row.get(column) or ""
                checked += bool(text)
                if redactor.redact(text) != text:  # the text itself must not be logged
                    offenders.append(f"{row[name]} has what looks like a secret in its {column}")
    return _verdict(offenders, f"{checked} texts", checked=checked, redaction=f"{workspace.settings.redact}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text) - COPIED + 1, STEP):
        yield text[start : start + COPIED]
