"""Sessions that are trees: which entries lie on branches that the person left."""

from __future__ import annotations

from collections.abc import Mapping


def left_behind(parents: Mapping[str, str], leaf: str, carried: Mapping[str, str] | None = None) -> set[str]:
    """The entries that branch off the way from the first entry to the leaf and are not on it.

    `parents` has the parent of every entry, "" or an unknown name where there is none. What hangs on an entry that
    is not on the way to the leaf, but on no common root either, was not left: its parent was lost. `carried` has, by
    the entry that is a summary, the last entry of the branch that it carried over: that branch is kept as long as the
    summary is, but for what had been left there before.
    """
    kept = set(_way(parents, leaf))
    summaries = dict(carried or {})
    while standing := kept & summaries.keys():
        for summary in standing:
            kept.update(_way(parents, summaries.pop(summary)))
    if len(kept) == len(parents):
        return set()
    status: dict[str, bool] = {}
    for entry in parents:
        path = []
        node = entry
        while node in parents and node not in kept and node not in status:
            path.append(node)
            status[node] = False  # an end to cycles
            node = parents[node]
        left = status.get(node, node in kept)
        for node in path:
            status[node] = left
    return {entry for entry, left in status.items() if left}


def below(parents: Mapping[str, str], entry: str) -> set[str]:
    """The entry and all that come after it."""
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(children.get(node, ()))
    return found


def _way(parents: Mapping[str, str], entry: str) -> dict[str, None]:
    """The entry and all above it."""
    way: dict[str, None] = {}
    while entry in parents and entry not in way:
        way[entry] = None
        entry = parents[entry]
    return way
