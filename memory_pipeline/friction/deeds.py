"""What an agent had just done when its user spoke: the programs that it ran, the files that it changed, and the words
that it put into them. Two objections to the same deed are likelier about one thing than their words tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from memory_pipeline.friction.attempts import EDITING, TOOL, Turn, head_of_call, is_call, looks_only, used
from memory_pipeline.friction.clustering import terms_of

LAST_CALLS = 3
"""Calls that change something, to which words after them may object."""
MAX_WRITTEN = 12
"""Terms of an edit; of a longer one none tells what it was about."""
RAN, CHANGED, WROTE = "ran", "changed", "wrote"
_FILE = re.compile(
    r"\b(?:file_path|path|filename|notebook_path|target_file|absolute_path)=(?P<path>[^,)\n]+)|"
    r"\*\*\* (?:Update|Add) File: (?P<patched>\S+)"
)
_NEW_TEXT = r"(?:newText|newString|new_string|new_str|content|file_text)"
_NEW = re.compile(rf", {_NEW_TEXT}=(?P<text>.*)", re.S)
_OLD = re.compile(rf", (?:oldText|oldString|old_string|old_str)=(?P<text>.*?), {_NEW_TEXT}=", re.S)
_PATCHED = re.compile(r"^(?P<sign>[+-])(?P<line>.*)$", re.M)


def deeds_before(turns: Sequence[Turn], request: int, position: int) -> frozenset[str]:
    """Of the last calls between two positions that did more than look."""
    calls = (turn for turn in turns[request:position] if turn.role == TOOL and is_call(turn))
    doing = [turn for turn in calls if not looks_only(head_of_call(turn))][-LAST_CALLS:]
    return frozenset(deed for turn in doing for deed in _deeds(turn))


def written_in(deeds: frozenset[str]) -> frozenset[str]:
    """The terms among the deeds that words of a user may name: those written, and the programs."""
    kept = (deed.partition(" ") for deed in deeds)
    return frozenset(term for what, _, told in kept if what != CHANGED for term in terms_of(told))


def _deeds(call: Turn) -> list[str]:
    head = head_of_call(call)
    if used(head) != EDITING:
        return [f"{RAN} {head}"]
    found = _FILE.search(call.text)
    file = PurePosixPath((found["path"] or found["patched"]).strip()).name if found else ""
    new, old = _written(call.text)
    terms = terms_of(new) - terms_of(old)
    told = [f"{WROTE} {term}" for term in terms] if len(terms) <= MAX_WRITTEN else []
    return [*told, *([f"{CHANGED} {re.sub(r'[0-9]+', '#', file)}"] if file else [])]


def _written(call: str) -> tuple[str, str]:
    """What a call puts into a file and what it takes out."""
    if new := _NEW.search(call):
        old = _OLD.search(call)
        return new["text"], old["text"] if old else ""
    lines = [(line["sign"], line["line"]) for line in _PATCHED.finditer(call)]
    return "\n".join(line for sign, line in lines if sign == "+"), "\n".join(
        line for sign, line in lines if sign == "-"
    )
