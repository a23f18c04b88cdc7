"""The bundled MiniLM in numpy: ready in hundredths of a second, for one query as for the texts of a backfill.

sentence-transformers takes seconds to import and pads the texts of a batch to the length of the longest. Here the texts
are sorted by length and concatenated: operations on single tokens are one multiplication over all of them, and
attention is computed for texts of exactly the same length. With one core this is as fast as torch in the same form, and
`benchmarks/embedding.py` compares it with sentence-transformers. The weights are mapped into memory, so that a query
reads only the rows of its words.

A vector does not depend on the other texts, except for rounding in the seventh place; the same texts on the same
machine give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController
from tokenizers import Tokenizer

Floats = NDArray[np.float32]

MAX_TOKENS = 256
"""Maximum tokens of a text including the begin and end tokens; longer texts are truncated, as sentence-transformers
does for this model."""
LAYERS, HEADS, HEAD_SIZE, EPSILON = 6, 12, 32, np.float32(1e-12)
_SORTED_AT_ONCE = 4_096
"""Number of texts whose tokens are held in memory at once, to be sorted by length."""
_BATCH_TOKENS = 1_024
"""Tokens of a batch, which needs 17 MB. 512 are slower, 2,048 no faster."""
_MAX_THREADS = 16
_SCORES_AT_ONCE, _ROWS_AT_ONCE = 65_536, 24
"""Numbers in the scores of attention, and rows of 1,536 in the activation, that stay in the processor's cache."""
_ERF_SCALE, *_ERF = map(np.float32, (0.3275911, 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))
"""Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: erf within 1.5e-7, which numpy lacks."""


class MiniLM:
    """all-MiniLM-L6-v2, loaded from its folder. Raises whatever a damaged file leads to."""

    def __init__(self, folder: Path) -> None:
        self._weights = _mapped(folder / "model.safetensors")
        self._tokenizer = tokenizer_of(folder)
        self._blas = ThreadpoolController()
        # multiplications are limited to one thread for the process: lifting the limit while another thread computes
        # would change that one's last digits
        self._alone = Lock()

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit vectors, one per text, in the order of the texts."""
        found: list[list[float]] = []
        for start in range(0, len(texts), _SORTED_AT_ONCE):
            some = [readable(text) for text in texts[start : start + _SORTED_AT_ONCE]]
            tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(some)]
            found += self._vectors(tokens).tolist()
        return found

    def _vectors(self, texts: list[list[int]]) -> Floats:
        """The vectors of texts given as tokens. One thread per batch is faster than several threads within a
        multiplication, and does not change the last digits."""
        batches = list(_batches([len(tokens) for tokens in texts]))
        vectors = np.empty((len(texts), HEADS * HEAD_SIZE), np.float32)

        def fill(numbers: list[int]) -> None:
            vectors[numbers] = self._batch([texts[number] for number in numbers])

        if len(batches) == 1:
            with self._alone, self._blas.limit(limits=1, user_api="blas"):
                fill(batches[0])
            return vectors
        with ThreadPoolExecutor(threads := self._threads()) as pool:
            for start in range(0, len(batches), threads):  # a query of another thread waits for so many
                with self._alone, self._blas.limit(limits=1, user_api="blas"):
                    list(pool.map(fill, batches[start : start + threads]))
        return vectors

    def _threads(self) -> int:
        """The threads of a multiplication without the limit, as the number of cores or a user's variable says."""
        with self._alone:
            found = [library["num_threads"] for library in self._blas.info() if library["user_api"] == "blas"]
        return min(max(found, default=os.cpu_count() or 1), _MAX_THREADS)

    def _batch(self, texts: list[list[int]]) -> Floats:
        """The vectors of texts that are sorted by number of tokens."""
        lengths = [len(tokens) for tokens in texts]
        states = self._states(texts, list(_groups(lengths)))
        sums = np.add.reduceat(states, np.cumsum([0, *lengths[:-1]]), axis=0)
        vectors: Floats = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def _states(self, texts: list[list[int]], groups: list[tuple[int, int]]) -> Floats:
        """The output of the last layer for each token."""
        of = self._weights
        words = of["embeddings.word_embeddings.weight"][np.concatenate(texts)]
        places = of["embeddings.position_embeddings.weight"][np.concatenate([np.arange(len(t)) for t in texts])]
        states = self._normalised(words + places + of["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            seen = self._attention(states, groups, f"{layer}.attention.self")
            states += self._linear(seen, f"{layer}.attention.output.dense")
            states = self._normalised(states, f"{layer}.attention.output")
            wide = self._linear(states, f"{layer}.intermediate.dense")
            for start in range(0, len(wide), _ROWS_AT_ONCE):
                _activate(wide[start : start + _ROWS_AT_ONCE])
            states += self._linear(wide, f"{layer}.output.dense")
            states = self._normalised(states, f"{layer}.output")
        return states

    def _attention(self, states: Floats, groups: list[tuple[int, int]], name: str) -> Floats:
        """The attention of each token within its own text; `groups` are pairs of a length and a number of texts."""
        factors = [self._linear(states, f"{name}.{part}") for part in ("query", "key", "value")]
        factors[0] *= np.float32(HEAD_SIZE**-0.5)
        seen = np.empty_like(states)
        start = 0
        for length, count in groups:
            part = slice(start, start + length * count)
            shape = count, length, HEADS, HEAD_SIZE
            query, key, value = (factor[part].reshape(shape).swapaxes(1, 2) for factor in factors)
            weights = query @ key.swapaxes(2, 3)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            attended = weights @ value
            attended /= weights.sum(axis=-1, keepdims=True)
            seen[part].reshape(shape)[...] = attended.swapaxes(1, 2)
            start = part.stop
        return seen

    def _linear(self, states: Floats, name: str) -> Floats:
        found: Floats = states @ self._weights[f"{name}.weight"].T
        found += self._weights[f"{name}.bias"]
        return found

    def _normalised(self, states: Floats, name: str) -> Floats:
        states -= states.mean(axis=-1, keepdims=True)
        states /= np.sqrt(np.square(states).mean(axis=-1, keepdims=True) + EPSILON)
        states *= self._weights[f"{name}.LayerNorm.weight"]
        states += self._weights[f"{name}.LayerNorm.bias"]
        return states


def tokenizer_of(folder: Path) -> Tokenizer:
    """The model's own tokenizer, which truncates at `MAX_TOKENS` and does not pad. Raises whatever a damaged file leads
    to."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def readable(text: str) -> str:
    """The text with `?` for lone surrogates, which stand for bytes that a terminal could not decode."""
    return text.encode(errors="replace").decode()


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Batches of text indices, shortest texts first, each with at most `_BATCH_TOKENS` tokens or a single text."""
    batch: list[int] = []
    tokens = 0
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and tokens + lengths[number] > _BATCH_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(number)
        tokens += lengths[number]
    if batch:
        yield batch


def _groups(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of a length and the number of consecutive texts with it, few enough for `_SCORES_AT_ONCE`."""
    for length, same in groupby(lengths):
        count, at_once = len(list(same)), max(1, _SCORES_AT_ONCE // (HEADS * length**2))
        for start in range(0, count, at_once):
            yield length, min(at_once, count - start)


def _activate(x: Floats) -> None:
    """Multiply x by the normal cumulative distribution at x (GELU in the exact form, with which the model was
    trained)."""
    z = np.abs(x)
    z *= np.float32(0.5**0.5)
    part = np.reciprocal(1 + _ERF_SCALE * z)
    series = np.zeros_like(part)
    for factor in _ERF:
        series += factor
        series *= part
    series *= np.exp(-z * z)
    x *= np.float32(0.5) * (1 + np.copysign(1 - series, x))


def _mapped(path: Path) -> dict[str, Floats]:
    """The tensors of a safetensors file by name, mapped into memory. The file holds a length, a table in JSON, and the
    numbers."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(size))
    data = np.memmap(path, np.uint8, "r", offset=8 + size)
    return {
        name: np.asarray(data[slice(*tensor["data_offsets"])]).view("<f4").reshape(tensor["shape"])
        for name, tensor in table.items()
        if tensor.get("dtype") == "F32"
    }
