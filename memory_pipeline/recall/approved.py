"""Lines of MEMORY.md as hits, from the current file, which a user may have just changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

from memory_pipeline.embeddings.index import Filters
from memory_pipeline.recall.cache import read_json, write_json
from memory_pipeline.recall.remembered import OTHER, Remembered, memory_bytes, remembered
from memory_pipeline.settings import BUNDLED_MODEL, Settings
from memory_pipeline.text.encoder import Encoder, EncoderUnavailableError
from memory_pipeline.text.terms import query_terms

MIN_SHARE = 0.5
"""Minimum share of the query, by weight of terms, in the words of a line, unless its cosine reaches `MIN_COSINE`."""
MIN_COSINE = 0.45
COSINE_OF_ALL = 0.7
"""Cosine at which a line scores like one that contains the whole query."""
MAX_NEW = 30
"""Maximum number of lines that one search embeds, at about 12 ms each; the next search continues."""


def approved_lines(
    settings: Settings,
    weights: Mapping[str, float],
    vector: Sequence[float] | None,
    encoder: Encoder | None,
    filters: Filters,
) -> list[tuple[Remembered, float]]:
    """Matching lines with scores from 0 to 1. Lines of other projects are left out, and a filter by session, day or
    kind excludes all, as lines have none of these."""
    projects = list(filters.equals.get("project", ()))
    if filters.first_day or filters.last_day or filters.equals.keys() - {"project"} or len(projects) > 1:
        return []
    project = projects[0] if projects else None
    lines = _lines(memory_bytes(settings), project, tuple(settings.sections))
    total = sum(weights.values())
    near = _cosines(settings, [line.text for line, _ in lines], vector, encoder) if lines else {}
    found = []
    for line, terms in lines:
        share = sum(weights[t] for t in terms & weights.keys()) / total if total else 0.0
        cosine = near.get(line.text, 0.0)
        if share >= MIN_SHARE or cosine >= MIN_COSINE:
            found.append((line, max(share, min(1.0, cosine / COSINE_OF_ALL))))
    return found


@lru_cache(maxsize=4)
def _lines(
    data: bytes | None, project: str | None, sections: tuple[str, ...]
) -> tuple[tuple[Remembered, frozenset[str]], ...]:
    """The lines that may apply to the project, each with its terms. Cached by the bytes of the file for a long-running
    process, as computing terms takes longer than the rest of a search."""
    lines = remembered(data, {}, project, sections)
    return tuple(
        (line, frozenset(query_terms(line.text))) for line in lines if not (project and line.nearness == OTHER)
    )


def _cosines(
    settings: Settings, texts: Sequence[str], vector: Sequence[float] | None, encoder: Encoder | None
) -> dict[str, float]:
    """The cosine of each text to the query. Vectors are cached in a file of the index. Empty without a vector or the
    model."""
    if vector is None or encoder is None or encoder.name != BUNDLED_MODEL:
        return {}
    kept_in = settings.index_dir / "memory_lines.json"
    stored = read_json(kept_in)
    known: dict[str, list[float]] = stored if isinstance(stored, dict) else {}
    wanted = {text: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts}
    new = [text for text, name in wanted.items() if name not in known][:MAX_NEW]
    try:
        made = {wanted[text]: [round(x, 5) for x in encoder.encode_query(text)] for text in new}
    except EncoderUnavailableError:
        return {}
    if made:
        known = {name: v for name, v in known.items() if name in set(wanted.values())} | made
        write_json(kept_in, known)
    embedded = [text for text, name in wanted.items() if len(known.get(name, ())) == len(vector)]
    if not embedded:
        return {}
    import numpy as np  # already loaded by the encoder

    cosines = np.array([known[wanted[text]] for text in embedded]) @ np.array(vector)
    return dict(zip(embedded, cosines.tolist(), strict=True))
