"""BM25 weights of a text's terms by the engine's own model; the engine applies the rarity of terms when searching."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from memory_pipeline.embeddings.index import CONTEXT, SESSION, WORDS, Sparse

if TYPE_CHECKING:
    from qdrant_edge import Bm25

_SHAPES = {WORDS: (1.2, 0.4, 40.0), CONTEXT: (1.2, 0.75, 100.0), SESSION: (2.0, 0.75, 800.0)}
"""BM25 parameters by vector: saturation of a repeated term, normalisation by length, average terms of a text. Changing
them by up to a factor of two changes no figure of `benchmarks/recall.py` by more than .5 points."""


def weigh(terms: Sequence[str], name: str) -> Sparse:
    """The terms of a document as the sparse vector of that name."""
    found = _model(name).embed_document(" ".join(terms))
    return Sparse(found.indices, found.values)


def weigh_query(terms: Sequence[str]) -> Sparse:
    """The unique terms of a query, all with the same weight."""
    found = _model(WORDS).embed_query(" ".join(terms))
    return Sparse(found.indices, found.values)


def numbers_of(term: str) -> list[int]:
    """The numbers of a term in sparse vectors."""
    return list(_model(WORDS).embed_query(term).indices)


@cache
def _model(name: str) -> Bm25:
    from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, StopwordsSet, TokenizerType

    saturation, by_length, usual = _SHAPES[name]
    return Bm25(
        Bm25Config(
            k=saturation,
            b=by_length,
            avg_len=usual,
            # the terms come from text/terms.py; the engine only splits them
            tokenizer=TokenizerType.Whitespace,
            lowercase=False,
            stopwords=StopwordsSet(),
            stemmer=DisabledStemmer(),
        )
    )
