"""Records that form a tree by their parents: which of them come after others, and which were left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def below(parents: Mapping[str, str], *entries: str) -> set[str]:
    """The entries and all that come after them."""
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


def last_below(parents: Mapping[str, str], positions: Mapping[str, int]) -> dict[str, int]:
    """The greatest position, for every entry, among it and all that come after it."""
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
        while children[entry] > 0:  # what is left are cycles, in which all come after each other
            children[entry] = 0
            cycle.append(entry)
            entry = parents[entry]
        greatest = max((last[node] for node in cycle), default=0)
        last.update(dict.fromkeys(cycle, greatest))
    return last


def left_behind(parents: Mapping[str, str], leaf: str, carried: Mapping[str, str] | None = None) -> set[str]:
    """The entries that branch off the way from the first entry to the leaf and are not on it.

    `parents` has the parent of every entry, "" or an unknown name where there is none. What hangs on an entry that
    is not on the way to the leaf, but on no common root either, was not left: its parent was lost. `carried` has, by
    the entry that is a summary, the last entry of the branch that it carried over: that branch is kept as long as the
    summary is, but for what had been left there before.
    """
    carried = carried or {}
    kept: set[str] = set()
    waiting = [leaf]
    while waiting:
        node = waiting.pop()
        while node in parents and node not in kept:
            kept.add(node)
            if node in carried:
                waiting.append(carried[node])
            node = parents[node]
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
