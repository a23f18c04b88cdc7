"""Properties of embedding models: prefixes of texts, and minimum cosines of texts with the same meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple


class Cosines(NamedTuple):
    """Minimum cosines of texts with the same meaning, by purpose, as measured for the model."""

    observed: float
    offered: float


@dataclass(frozen=True)
class EmbeddingModel:
    """A model, or a family of models with the same training."""

    query: str = ""
    """The prefix of a question."""
    document: str = ""
    """The prefix of a text to be found."""
    cosines: Cosines | None = None
    """None if not measured. Lines are then compared by their words alone, as cosines of different models are not
    comparable: unrelated texts have cosines above .7 with e5. A line that is merged by mistake is lost; one that is
    missed is merely offered twice."""

    @property
    def is_calibrated(self) -> bool:
        return self.cosines is not None


MINILM_COSINES = Cosines(observed=0.75, offered=0.7)
"""The only cosines that were measured. Those of another model must also be passed to `relation.groups`."""
UNKNOWN = EmbeddingModel()
_BGE_EN = "Represent this sentence for searching relevant passages: "
_KNOWN = {
    r"all-minilm-l6-v2": EmbeddingModel(cosines=MINILM_COSINES),
    r"nomic-embed-text-v1(\.5)?": EmbeddingModel("search_query: ", "search_document: "),
    r"(multilingual-)?e5-(small|base|large)(-v2)?": EmbeddingModel("query: ", "passage: "),
    r"bge-(small|base|large)-en(-v1\.5)?": EmbeddingModel(_BGE_EN),
    r"bge-(small|base|large)-zh(-v1\.5)?": EmbeddingModel("为这个句子生成表示以用于检索相关文章："),
}
"""Models by the end of their name, `OWNER/NAME` or a folder, with the prefixes of their model cards. Prompts in a
model's own configuration take precedence."""


def facts_of(name: str) -> EmbeddingModel:
    """The properties of the model of this name; `UNKNOWN` if there are none."""
    last = PurePath(name).name.lower()
    return next((model for pattern, model in _KNOWN.items() if re.fullmatch(pattern, last)), UNKNOWN)
