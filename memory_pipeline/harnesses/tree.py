"""Trees of records by their parents: descendants, and abandoned branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def descendants(parents: Mapping[str, str], *entries: str) -> set[str]:
    """The entries and all of their descendants."""
    found: set[str] = set()
    waiting = list(entries)
    if not waiting:
        return found
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(children.get(node, ()))
    return found


def last_descendants(parents: Mapping[str, str], positions: Mapping[str, int]) -> dict[str, int]:
    """For every entry, the greatest position among it and its descendants."""
    last = {entry: positions[entry] for entry in parents}
    children = Counter(parents.values())
    waiting = [entry for entry in parents if not children[entry]]
    while waiting:
        entry = waiting.pop()
        parent = parents[entry]
        if parent in last:
            last[parent] = max(last[parent], last[entry])
            children[parent] -= 1
            if not children[parent]:
                waiting.append(parent)
    for entry in parents:
        cycle = []
        while children[entry] > 0:  # the rest are cycles, in which all are descendants of each other
            children[entry] = 0
            cycle.append(entry)
            entry = parents[entry]
        greatest = max((last[node] for node in cycle), default=0)
        last.update(dict.fromkeys(cycle, greatest))
    return last


def abandoned(parents: Mapping[str, str], leaf: str, summarised: Mapping[str, str] | None = None) -> set[str]:
    """The entries that branch off the path from the first entry to the leaf.

    `parents` maps every entry to its parent, "" or an unknown name if there is none. An entry that is neither on the
    path to the leaf nor connected to its root was not abandoned: its parent was lost. `summarised` maps each summary to
    the last entry of the branch that it carried over: that branch is kept as long as the summary is, except for parts
    that had been abandoned before.
    """
    summarised = summarised or {}
    kept: set[str] = set()
    waiting = [leaf]
    while waiting:
        node = waiting.pop()
        while node in parents and node not in kept:
            kept.add(node)
            if node in summarised:
                waiting.append(summarised[node])
            node = parents[node]
    if len(kept) == len(parents):
        return set()
    status: dict[str, bool] = {}
    for entry in parents:
        path = []
        node = entry
        while node in parents and node not in kept and node not in status:
            path.append(node)
            status[node] = False  # breaks cycles
            node = parents[node]
        left = status.get(node, node in kept)
        for node in path:
            status[node] = left
    return {entry for entry, left in status.items() if left}
