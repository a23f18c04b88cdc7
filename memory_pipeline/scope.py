"""The projects of a line: how far it applies, and how that is described.

A line without a project applies everywhere: its project is unknown, or it was said outside of any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memory_pipeline.markdown.blocks import one_line

NAMED = 3
"""Maximum number of projects that are named; above it only their number is given."""
_MARKS = re.compile(r"[()\[\]<>`*|\\]+")
_NOTE = re.compile(r"\s*\((?:project: (?P<only>[^()]+)|general, from [^()]+)\)$")

_REMOTE = re.compile(r"[:/](?P<owner>[^/:@]+)/(?P<name>\.?\w[\w.-]*?)(?:\.git)?/?$")


def may_end(newer: Collection[str] | None, older: Collection[str] | None) -> bool:
    """Whether a later statement in these projects can end one in those: not if the older one also applies elsewhere."""
    return not newer or not older or set(older) <= set(newer)


def are_apart(one: Collection[str] | None, other: Collection[str] | None) -> bool:
    """Whether they were said in different projects."""
    return bool(one) and bool(other) and set(one or ()).isdisjoint(other or ())


def describe_projects(projects: Sequence[str] | None) -> str:
    """`project: kiln`, or for several projects `general, from cli, kiln`; empty if no project is known."""
    names = [name for project in projects or () if (name := _plain(project))]
    if len(names) < 2:
        return f"project: {names[0]}" if names else ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"general, from {', '.join(names[:NAMED])}{more}"


def only(projects: Sequence[str] | None) -> str | None:
    """The name of the only project; None if there are several or none."""
    return _plain(projects[0]) or None if projects and len(projects) == 1 else None


def with_note(text: str, projects: Sequence[str] | None) -> str:
    """The line followed by its projects in brackets; unchanged if it has such a note."""
    note = describe_projects(projects)
    return f"{text} ({note})" if note and not _NOTE.search(text) else text


def without_note(text: str) -> str:
    return _NOTE.sub("", text)


def noted(text: str) -> str | None:
    """The only project that the line's note names; None if it has no note, or one of several."""
    found = _NOTE.search(text)
    return found["only"] if found else None


def _plain(project: str) -> str:
    """The name of a project without markup and brackets: a folder may have any name."""
    return " ".join(_MARKS.sub(" ", one_line(project)).split())


def repository_of(url: str) -> str:
    """The `owner/name` in the address of a git remote; empty where it has none."""
    found = _REMOTE.search(url.strip())
    return f"{found['owner']}/{found['name']}" if found else ""
