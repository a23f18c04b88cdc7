"""Which short texts say the same: by their vectors where they have one, else by their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_pipeline.text.similarity import content_words, overlap


def groups(
    ids: Sequence[str],
    texts: Mapping[str, str],
    vectors: Mapping[str, Sequence[float]],
    *,
    min_cosine: float,
    min_overlap: float,
) -> list[list[str]]:
    """Put each id into the first group whose first member it resembles, else into a new one.

    The order of `ids` decides who leads: give the best first. Comparing with the leader only keeps a group
    about one thing; chains of neighbours drift.
    """
    import numpy as np  # not on import: a command that groups nothing need not wait for it

    found: list[list[str]] = []
    words = {i: content_words(texts[i]) for i in ids}
    unit = {i: np.asarray(vectors[i], dtype=np.float32) for i in ids if i in vectors}
    for i in ids:
        for group in found:
            leader = group[0]
            if i in unit and leader in unit:
                same = float(unit[i] @ unit[leader]) >= min_cosine
            else:
                same = overlap(words[i], words[leader]) >= min_overlap
            if same:
                group.append(i)
                break
        else:
            found.append([i])
    return found
