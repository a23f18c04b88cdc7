"""Session folders of agents, given as patterns and expanded for a home and an environment.

A pattern is a path in the notation of a shell: `~` is the home, `${NAME:-default}` an environment variable with its
default, `*` any folder. A default with commas lists alternatives, and so may the value of its variable. Without a
default the pattern counts only if the variable is set; an absolute value replaces the path before it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+):-((?:[^{}]|\{[^{}]*\})*)\}")


def expand(pattern: str, home: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders of a pattern, in order; with a `*` only existing ones, sorted."""
    folders: list[Path] = []
    for path in _without_variables(pattern, env):
        fixed, star, _ = path.partition("*")
        if not star:
            folders.append(_from_home(path, home))
            continue
        start, rest = _from_home(fixed.rpartition("/")[0], home), path[fixed.rindex("/") + 1 :]
        # pathlib's glob stops at an inaccessible folder
        folders += [start / found for found in sorted(glob.glob(rest, root_dir=start))]  # noqa: PTH207
    return folders


def variables(patterns: Iterable[str]) -> list[str]:
    """The environment variables that can change the folders, without repetitions."""
    return list(dict.fromkeys(name for pattern in patterns for name in re.findall(r"\$\{(\w+)", pattern)))


def _without_variables(pattern: str, env: Mapping[str, str]) -> Iterator[str]:
    found = _VARIABLE.search(pattern)
    if not found:
        yield pattern
        return
    default = found[2]
    value = env.get(found[1], "").strip() or default
    for choice in value.split(",") if "," in default else [value]:
        if choice := choice.strip():
            before = "" if choice.startswith("/") else pattern[: found.start()]
            yield from _without_variables(before + choice + pattern[found.end() :], env)


def _from_home(path: str, home: Path) -> Path:
    return home / path[2:] if path.startswith("~/") else home if path == "~" else Path(path)
