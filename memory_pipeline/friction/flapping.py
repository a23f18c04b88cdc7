"""Checks of the environment with alternating answers: a version, a path or a setting that changes to another value and
back. Something keeps changing it, as a mere upgrade would not be undone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.friction.attempts import Turn, attempts, output_of
from memory_pipeline.friction.events import FrictionEvent, cost
from memory_pipeline.friction.patterns import AGENTS_FILE, CONFIGURATION_DRIFT, MIN_SESSIONS, Pattern
from memory_pipeline.scope import describe_projects
from memory_pipeline.text.sentences import clip

MAX_ANSWER = 300
"""Maximum characters of an output that counts as an answer."""
_OF_THE_MACHINE = re.compile(
    r"[\w./-]+ (?:--version|-V|version)|(?:which|type|command -v|printenv) [\w.-]+|echo \"?\$\{?\w+\}?\"?|"
    r"(?:npm|pnpm|yarn|pip3?|go|gcloud|aws) (?:config|configure|env) (?:get )?[\w./-]+|"
    r"git config --global (?:--get )?[\w.-]+"
)
_OF_A_FOLDER = re.compile(
    r"git config (?:--local )?(?:--get(?:-all)? )?[\w-]+\.[\w.-]+|git remote (?:-v|get-url [\w-]+)|pwd"
)
_PLACE = re.compile(r"\b(?:workdir|cwd|dir_path|directory)=(?P<place>[^,)\n]+)")
_GOES_TO = re.compile(r"cd [\"']?(?P<place>[^\s\"';&|]+)[\"']? && ")


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one check."""

    event: FrictionEvent
    question: tuple[str, str]
    """The command and its folder; "" if it is about the machine."""


def answers_in(turns: Sequence[Turn], cwd: str | None, project: str | None) -> Iterator[Answer]:
    """The answers in one session. A check of a folder counts only if the folder is known, which it is not after an
    earlier change of directory."""
    has_moved = False
    for attempt in attempts(turns):
        command = (attempt.command or "").strip()
        goes = _GOES_TO.match(command)
        bare = command[goes.end() :] if goes else command
        is_of_folder = _OF_A_FOLDER.fullmatch(bare) is not None
        named = _PLACE.search(attempt.call.text)
        place = goes["place"] if goes else named["place"] if named else None if has_moved else cwd
        has_moved = has_moved or re.search(r"(?:^|[;&|\s])(?:cd|pushd) ", command) is not None
        if not (is_of_folder or _OF_THE_MACHINE.fullmatch(bare)) or (is_of_folder and not place):
            continue
        said = " ".join(output_of(attempt.result.text).split())
        if attempt.result is attempt.call or attempt.is_refused or len(said) > MAX_ANSWER:
            continue
        result = attempt.result
        lost, minutes = cost(turns, attempt.position, attempt.ended)
        event = FrictionEvent(
            *(result.message_id, result.day, result.session_id, result.at, said),
            *(((result.message_id, 0, len(result.text)),), cwd, project, lost, minutes),
        )
        yield Answer(event, (bare, (place or "") if is_of_folder else ""))


def patterns_of(answers: Sequence[Answer]) -> list[Pattern]:
    """The checks, across sessions, that returned to an earlier answer."""
    asked: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in sorted(answers, key=lambda one: (one.event.at, one.event.event_id)):
        asked[answer.question].append(answer)
    found = []
    for (command, _), own in asked.items():
        turned = [i for i in range(1, len(own)) if own[i].event.text != own[i - 1].event.text]
        events = tuple(own[i].event for i in sorted({n for i in turned for n in (i - 1, i)}))
        comes_back = len(turned) > len({own[i].event.text for i in turned} - {own[0].event.text})
        if comes_back and len({event.session_id for event in events}) >= MIN_SESSIONS:
            found.append(_pattern(command, events))
    return found


def _pattern(command: str, events: tuple[FrictionEvent, ...]) -> Pattern:
    last, before = events[-1], next(e for e in reversed(events) if e.text != events[-1].text)
    both = f"“{clip(before.text, 70) or 'nothing'}” and “{clip(last.text, 70) or 'nothing'}”"
    where = f" in {describe_projects([last.project])}" if last.project else ""
    return Pattern(
        CONFIGURATION_DRIFT,
        f"`{command}` says now one thing, now another: {both}",
        AGENTS_FILE,
        events,
        adds=f"`{command}` keeps changing{where} between {both}: look at it first, and find what sets it.",
    )
