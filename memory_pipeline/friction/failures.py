"""Recurring errors of tools: failures, misuse, and problems of the environment."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memory_pipeline.agents.kit.tool_calls import signature
from memory_pipeline.friction.attempts import (
    USER,
    Attempt,
    Session,
    canonical_name,
    head_of,
    only_reads,
)
from memory_pipeline.friction.errors import drifting, error_in, errors_in, sets_up
from memory_pipeline.friction.patterns import (
    AGENTS_FILE,
    CONFIGURATION_DRIFT,
    MIN_SESSIONS,
    RECURRING_FAILURE,
    TOOL_MISUSE,
    FrictionEvent,
    Pattern,
    cost,
    event_at,
    request_before,
    user_after,
)
from memory_pipeline.scope import only
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.sentences import clip

NEXT_TRIES = 4
"""Number of calls after a failed one that are searched for a replacement."""
REPLACED_SHARE = 0.5
"""Minimum share of occurrences that a replacement followed."""
MIN_REFUSALS = 3
"""Minimum sessions with a refused call, without another call after it, from which the call itself is unwanted."""
MAX_ERROR = 200
"""Maximum characters of a line about the environment."""
MAX_FIXES = 6
"""Maximum number of calls between a failure and the success of the same call that are searched for its cure."""

_MISSING_FILE = deferred(r"^(?:file|path) does not exist\.?(?: did you mean .*)?$|^path does not exist", re.I)
_OPTION = deferred(
    r"(?:unknown|unrecognized|unexpected|invalid|no such|unsupported) (?:\w+ )?(?:options?|flags?|arguments?|"
    r"(?:sub)?commands?|fields?|parameters?|json field|switch)|unknown shorthand flag|^usage:|missing required arg",
    re.I,
)
"""Errors of a program about an unknown option."""
_PROTOCOL = deferred(
    r"has not been read yet|to replace not found|matches of the string|old_?string|has been modified since|"
    r"no changes to make|exceeds maximum allowed|must be unique|"
    r"failed to find expected lines|offset \S+ is beyond|apply_patch (?:verification failed|handler received)|"
    r"invalid (?:hunk|patch)|unknown process id|is unavailable in \w+ mode|unsupported (?:custom tool )?call",
    re.I,
)
"""Errors between a harness and its model, which the user cannot change."""
_NATURAL = deferred(r"merge conflict|automatic merge failed|conflict \(|fix conflicts", re.I)
"""Errors that are part of the work: a conflict, a test that does not pass yet."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed or was refused, with the calls that followed."""

    event: FrictionEvent
    head: str
    error: str
    """The error; empty if the user refused the call."""
    instead: str | None
    """The next successful call on the same subject."""
    cure: str | None
    """The command between the failure and the success of the same call."""
    request: str
    """The id of the user's message that requested the work."""
    words: str = ""
    """The words of the user who refused the call."""


def failures_in(session: Session) -> Iterator[Failure]:
    """The failures of one session."""
    for number, attempt in enumerate(session.attempts):
        error = "" if attempt.is_refused else _error(attempt.result.text)
        if attempt.is_refused or (attempt.has_failed and error):
            yield _failure(session, attempt, error, session.attempts[number + 1 :])


def _failure(session: Session, attempt: Attempt, error: str, later: Sequence[Attempt]) -> Failure:
    turns, result = session.turns, attempt.result
    place = attempt.path if _MISSING_FILE.search(error) else None
    end = user_after(turns, attempt.ended)
    tries = [other for other in later if other.position <= end][:MAX_FIXES]
    again = next((i for i, other in enumerate(tries) if _is_same(attempt, other) and other.has_succeeded), None)
    own = _without_numbers(attempt.call.text)  # if the same call succeeded later, nothing replaced it
    was_mended = any(_without_numbers(a.call.text) == own and a.has_succeeded for a in tries)
    until = tries[again].ended if again is not None else min(end, attempt.ended + 4)
    start = max(result.text.find(error), 0) if error else 0
    spans = [(result.message_id, start, start + len(error or result.text[:200]))]
    beside = turns[max(0, attempt.ended - 1) : attempt.ended + 3]  # the order depends on the harness
    answer = next((turn for turn in beside if turn.role == USER), None) if attempt.is_refused else None
    if answer is not None:
        spans.append((answer.message_id, 0, len(answer.text)))
    text = error or f"{attempt.head} was refused"
    return Failure(
        event_at(session, result, text, spans, cost(turns, attempt.position, until)),
        attempt.head,
        f"{error.rstrip('.')}: {place}" if place else error,
        None if was_mended else _replacement(attempt, later[:NEXT_TRIES]),
        tries[again - 1].command if again else None,
        turns[request_before(turns, attempt.position)].message_id,
        answer.text if answer else "",
    )


def _error(text: str) -> str:
    """The line that describes the error; one about the environment takes precedence, as it causes the others."""
    error = error_in(text) or ""
    if error and drifting(error) is None:
        lines = (line for line in errors_in(text) if len(line) <= MAX_ERROR)
        return next((line for line in lines if drifting(line) is not None), error)
    return error


def _is_same(one: Attempt, other: Attempt) -> bool:
    return one.call.tool == other.call.tool and one.head == other.head


def _without_numbers(call: str) -> str:
    """The call without numbers, which differ between identical builds."""
    return re.sub(r"\d+", "#", call)


def _replacement(attempt: Attempt, later: Sequence[Attempt]) -> str | None:
    """The next successful call on the same subject or, after a refusal, the next call."""
    about = attempt.subject
    for other in later:
        if (
            not other.has_succeeded
            or canonical_name(other.head) == canonical_name(attempt.head)
            or (only_reads(other.head) and not only_reads(attempt.head))
        ):
            continue
        if attempt.is_refused or about & other.subject:
            return canonical_name(other.head)
    return None


def find_patterns(failures: Sequence[Failure]) -> list[Pattern]:
    """The failures that recur in more than one session, each in a single pattern."""
    by_key: dict[tuple[str, ...], list[Failure]] = defaultdict(list)
    for failure in sorted(failures, key=lambda f: (f.event.at, f.event.event_id)):
        by_key[_key(failure)].append(failure)
    recurring = {key: own for key, own in by_key.items() if len({m.event.session_id for m in own}) >= MIN_SESSIONS}
    return [
        replace(pattern, requests=frozenset(m.request for m in members))
        for key, members in recurring.items()
        if (pattern := _pattern(key, members))
    ]


def _key(failure: Failure) -> tuple[str, ...]:
    """The key of equal failures. A missing file belongs to one project, a missing program to the machine."""
    project = failure.event.project or ""
    if not failure.error:
        return ("refused", failure.head)
    drift = drifting(failure.error)
    if drift is not None:
        is_local = project if _FILE_MISSING.search(failure.error) else ""
        return ("drift", is_local, drift[1], "" if drift[1] else signature(failure.error))
    if _OPTION.search(failure.error):
        return ("option", failure.head.split()[0])
    return ("failed", failure.head.split()[0] if _VAGUE.search(failure.error) else "", signature(failure.error))


_FILE_MISSING = deferred(r"no such file|does not exist|cannot access|enoent|(?<!command )not found: ", re.I)
_VAGUE = deferred(r"^\W*(?:\w+ ){0,3}(?:error|failed|failure|invalid|not found|denied)\W*$", re.I)
"""Errors without meaning unless the program is named."""


def _pattern(key: tuple[str, ...], members: Sequence[Failure]) -> Pattern | None:
    events = tuple(m.event for m in members)
    newest, head = members[-1], Counter(m.head for m in members).most_common(1)[0][0]
    instead = _most_common(members, lambda m: m.instead)
    name = only(sorted({m.event.project for m in members if m.event.project}))
    where = f" in {name}" if name else ""
    if key[0] == "refused":
        return _refusal(members, head, instead, where)
    cure, error = _most_common(members, lambda m: m.cure), clip(newest.error, 160)
    if key[0] == "drift":
        return _drift(key[2], events, head, error, instead, cure, where)
    if (_NATURAL.search(newest.error) and not _cures(cure)) or (_PROTOCOL.search(newest.error) and not instead):
        return None
    if key[0] == "option" or instead:
        return _misuse(events, head, newest.error, instead)
    if sets_up(cure):
        return _drift("", events, head, error, instead, cure, where)
    shown = _WHERE.sub("", newest.error)
    then = f"run `{clip(cure, 120)}` first" if cure else _ZSH if "no matches found" in newest.error else ""
    line = f"`{head}` fails with “{clip(shown, 140)}”" + (f": {then}." if then else "; check what it requires first.")
    return Pattern(RECURRING_FAILURE, f"`{head}` fails with “{clip(shown, 90)}”", AGENTS_FILE, events, adds=line)


def _refusal(members: Sequence[Failure], head: str, instead: str | None, where: str) -> Pattern | None:
    events = tuple(m.event for m in members)
    times = len({event.session_id for event in events})
    if head in _EDITORS or not head.strip() or head == "a tool" or (times < MIN_REFUSALS and not instead):
        return None
    use = f"; use `{instead}`" if instead else ""
    said = clip(next((m.words for m in reversed(members) if len(m.words.split()) > 2), ""), 160)
    title = f"You refused `{head}` in {times} sessions" + (f": “{clip(said, 80)}”" if said else "")
    line = f"Do not call `{head}` without being asked to{where}{use}." + (f" “{said}”" if said else "")
    return Pattern(TOOL_MISUSE, title, AGENTS_FILE, events, adds=line)


def _misuse(events: tuple[FrictionEvent, ...], head: str, error: str, instead: str | None) -> Pattern:
    use = f"use `{instead}`" if instead else f"see `{head.split()[0]} --help` first"
    title = f"`{head}` fails with “{clip(error, 80)}”" + (f", and `{instead}` is used instead" if instead else "")
    line = f"`{head}` fails here with “{clip(error, 160)}”; {use}."
    return Pattern(TOOL_MISUSE, title, AGENTS_FILE, events, adds=line)


def _cures(cure: str | None) -> bool:
    """Whether a command cures the failure; subcommands of git do not count, as they are part of the work."""
    return cure is not None and head_of(cure).split()[0] != "git"


_WHERE = deferred(r"^(?:\[[\w:-]+\] )?(?:[\w./-]+\.\w+:\d+(?::\d+)?:? )")
"""The position of an error, which varies."""
_ZSH = "quote globs and URLs that have `*`, `?` or `[` in them, as the shell is zsh"
_EDITORS = frozenset({"Edit", "Write", "MultiEdit", "ExitPlanMode", "AskUserQuestion", "apply_patch", "edit", "write"})
"""Tools whose calls are refused because of the content to be written."""


def _drift(
    thing: str,
    events: tuple[FrictionEvent, ...],
    head: str,
    error: str,
    instead: str | None,
    cure: str | None,
    where: str,
) -> Pattern:
    # before the error, as a hint shows only the start of the line
    use = f"; use `{instead}`" if instead else f"; `{clip(cure, 120)}` helped" if cure else ""
    if thing.isdigit():  # errors rarely say whether a port is in use or nothing listens on it
        problem = f"`{head}` fails on port {thing}"
    elif thing:
        problem = f"`{thing}` is missing or differs from what `{head}` needs"
    else:
        problem = f"`{head}` fails because of its environment"
    title, line = f"{problem}: “{clip(error, 90)}”", f"{problem}{where}{use}: “{error}”."
    return Pattern(CONFIGURATION_DRIFT, title, AGENTS_FILE, events, adds=line)


def _most_common(members: Sequence[Failure], what: Callable[[Failure], str | None]) -> str | None:
    """The most common value, if enough of them share it."""
    found = Counter(value for m in members if (value := what(m)))
    if not found:
        return None
    value, times = found.most_common(1)[0]
    return str(value) if times >= max(MIN_SESSIONS, REPLACED_SHARE * len(members)) else None
