"""A history of as many days as are wanted, from recorded sessions: each copy on its own day, with its own names.

A copy has other ids, times moved by whole days, and other identifiers in what was said (``load_kiln`` becomes
``load_kiln_xq``): otherwise it would be the same session again, which is stored once. Prose is left as it is, so what
is said recurs more often than in a person's own year, and what is merged or grouped has more to do than there.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

NAMESPACE = uuid.UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(rb"(20\d\d-\d\d-\d\d)T\d\d:\d\d:\d\d")
_MILLISECONDS = re.compile(rb"(?<![\d.])1[67]\d{11}(?![\d.])")
_IDENTIFIER = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+(?:[A-Z][a-z]+)+\b")
_SESSION = re.compile(rb'("(?:sessionId|agentId)":\s*")([^"]+)')
_SAID = ("text", "content", "thinking", "output")
_DAY_MS = 86_400_000


def copy_sessions(sources: Sequence[Path], target: Path, first: date, days: int, per_day: int, seed: int = 1) -> int:
    """Write `per_day` copies on each day; returns their bytes. A session of several days begins on the day and goes on
    into the next ones. Raises ValueError for a source without a time."""
    chance, written, taken = random.Random(seed), 0, list[Path]()
    for number in range(days):
        for _ in range(per_day):
            if not taken:
                taken = chance.sample(list(sources), len(sources))
            written += _copy(taken.pop(), target, first + timedelta(days=number), f"{written}")
    return written


def _copy(source: Path, target: Path, day: date, name: str) -> int:
    content = source.read_bytes()
    found = _TIME.search(content)
    if not found:
        raise ValueError(f"{source} has no time, so it cannot be moved to another day.")
    delta = day - date.fromisoformat(found[1].decode())
    content = _UUID.sub(lambda m: f"{uuid.uuid5(NAMESPACE, name + m[0].decode())}".encode(), content)
    content = _TIME.sub(lambda m: _moved(m, delta), content)
    content = _MILLISECONDS.sub(lambda m: b"%d" % (int(m[0]) + delta.days * _DAY_MS), content)
    content = _SESSION.sub(
        lambda m: m[0] if _UUID.fullmatch(m[2]) else b"%s%s-%s" % (m[1], m[2], name.encode()), content
    )
    suffix = f"{uuid.uuid5(NAMESPACE, name)}".translate(str.maketrans("0123456789-", "ghijklmnopq"))[:3]
    lines = [_renamed(line, suffix) for line in content.splitlines()]
    folder = target / source.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    copied = b"\n".join(lines) + b"\n"
    (folder / f"{day}-{name}-{source.stem}{source.suffix}").write_bytes(copied)
    return len(copied)


def _moved(found: re.Match[bytes], delta: timedelta) -> bytes:
    try:
        return (datetime.fromisoformat(found[0].decode()) + delta).isoformat().encode()
    except ValueError:  # looks like a time and is none
        return found[0]


def _renamed(line: bytes, suffix: str) -> bytes:
    try:
        return orjson.dumps(_with_names(orjson.loads(line), suffix, said=False))
    except orjson.JSONDecodeError:
        return line


def _with_names(value: Any, suffix: str, *, said: bool) -> Any:
    if isinstance(value, str) and said:
        return _IDENTIFIER.sub(lambda m: f"{m[0]}_{suffix}", value)
    if isinstance(value, list):
        return [_with_names(item, suffix, said=said) for item in value]
    if isinstance(value, dict):
        return {key: _with_names(item, suffix, said=key in _SAID) for key, item in value.items()}
    return value
