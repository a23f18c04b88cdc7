"""What holds for one embedding model and not for another: words before a text, and the cosine from which two say the
same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple


class Cosines(NamedTuple):
    """From which two texts say the same, by what is asked: `sameness.py` says how they were chosen."""

    observed: float
    offered: float


@dataclass(frozen=True)
class EmbeddingModel:
    """A model, or a family of models that were trained alike."""

    source: str = ""
    """Where this is said."""
    query: str = ""
    """What stands before a question."""
    document: str = ""
    """What stands before a text that is searched."""
    cosines: Cosines | None = None
    """None: not measured. Lines are then compared by their words alone, since a cosine means nothing across models:
    those of e5 lie above .7 also for texts that have nothing to do with each other. A line that is merged by mistake is
    lost, one that is not is offered twice."""

    @property
    def is_calibrated(self) -> bool:
        return self.cosines is not None


MINILM_COSINES = Cosines(observed=0.75, offered=0.7)
"""The only ones that were measured. Who measures another model's has to hand them to `sameness.groups` too."""
UNKNOWN = EmbeddingModel()
_KNOWN = (
    (
        r"all-minilm-l6-v2",
        EmbeddingModel(source="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2", cosines=MINILM_COSINES),
    ),
    (
        r"nomic-embed-text-v1(\.5)?",
        EmbeddingModel(
            source="https://huggingface.co/nomic-ai/nomic-embed-text-v1.5",
            query="search_query: ",
            document="search_document: ",
        ),
    ),
    (
        r"(multilingual-)?e5-(small|base|large)(-v2)?",
        EmbeddingModel(source="https://huggingface.co/intfloat/e5-base-v2", query="query: ", document="passage: "),
    ),
    (
        r"bge-(small|base|large)-en(-v1\.5)?",
        EmbeddingModel(
            source="https://huggingface.co/BAAI/bge-base-en-v1.5",
            query="Represent this sentence for searching relevant passages: ",
        ),
    ),
    (
        r"bge-(small|base|large)-zh(-v1\.5)?",
        EmbeddingModel(
            source="https://huggingface.co/BAAI/bge-base-zh-v1.5", query="为这个句子生成表示以用于检索相关文章："
        ),
    ),
    (r"bge-m3", EmbeddingModel(source="https://huggingface.co/BAAI/bge-m3")),
    (r"gte-(small|base|large)", EmbeddingModel(source="https://huggingface.co/thenlper/gte-base")),
)
"""By the end of a name, `OWNER/NAME` or a folder. A model whose own configuration has prompts is asked with these."""


def facts_of(name: str) -> EmbeddingModel:
    """What is known of the model of this name; `UNKNOWN` where nothing is."""
    last = PurePath(name).name.lower()
    return next((model for pattern, model in _KNOWN if re.fullmatch(pattern, last)), UNKNOWN)
