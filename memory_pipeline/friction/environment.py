"""How likely what a failed command printed tells of where it ran (the machine, an account, a service) and not of the
work: the very same code would run elsewhere.

Told by the words of the end of the output, each two neighbours among them, and by its vector, with weights that
`benchmarks/fit_errors.py` fitted on outputs of 1,160 problems: a test may assert that a connection is refused,
and a runtime that is too old calls good code a syntax error, so no phrase decides alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import fmean

from memory_pipeline.friction import sentence_weights
from memory_pipeline.friction.attempts import output_of
from memory_pipeline.friction.clustering import Vector
from memory_pipeline.friction.sentence_weights import FIRST, LAST, NUMBER

WEIGHTS = "environment.json"
MAX_LINES, MAX_CHARACTERS = 12, 800
"""Of the end of an output: what went wrong stands there, after what went well."""
A_PATH, A_NAME = "apath", "A_NAME"
_PATH = re.compile(r"(?:(?:~|\.{1,2})?/)?(?:[\w.@+-]+/)+[\w.@+-]*")
_WORD = re.compile(r"[^\W\d][\w'’]*|\d+|[!?]")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_PART = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])")
MIN_PART = 3


def end_of(text: str) -> str:
    """Of a tool's output, without what its harness puts around it."""
    lines = [line.strip() for line in output_of(text).splitlines()]
    return "\n".join([line for line in lines if line][-MAX_LINES:])[-MAX_CHARACTERS:]


def parts_of_output(end: str) -> frozenset[str]:
    """What the weights know of the end of an output: the words of its lines, each two neighbours, and the parts of a
    name of code. Numbers, paths and names of variables in capitals are one word each."""
    found = set[str]()
    for line in end.splitlines():
        words = []
        for word in _WORD.findall(_PATH.sub(f" {A_PATH} ", line)):
            if word.isdigit():
                words.append(NUMBER)
            elif _CAPITALS.fullmatch(word):
                words.append(A_NAME)
            else:
                words.append(word.lower().replace("’", "'"))
                parts = _PART.findall(word)
                found.update(part.lower() for part in parts if len(parts) > 1 and len(part) >= MIN_PART)
        found.update(words)
        found.update(f"{one} {other}" for one, other in pairwise([FIRST, *words, LAST]))
    return frozenset(found)


def is_of_environment(ends: Iterable[str], vectors: Mapping[str, Vector]) -> bool:
    """Whether what was printed each time that one thing went wrong tells of where it ran. ``vectors`` are those of
    `PhraseEncoder`, by text."""
    weights = sentence_weights.load(WEIGHTS)
    told = [weights.logit(parts_of_output(end), vectors.get(end)) for end in ends]
    return bool(told) and fmean(told) > 0
