"""The bundled MiniLM in numpy, for a single query: it is ready in hundredths of a second.

sentence-transformers takes seconds to import, too long for one question on the command line. The weights come from the
same file, mapped into memory, so that only the rows of a text's words are read.
"""

from __future__ import annotations

import json
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
_ERF_SCALE, *_ERF = map(np.float32, (0.3275911, 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))
"""Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: erf within 1.5e-7, which numpy lacks."""


class MiniLM:
    """all-MiniLM-L6-v2, loaded from its folder. Raises whatever a damaged file leads to."""

    def __init__(self, folder: Path) -> None:
        self._weights = _mapped(folder / "model.safetensors")
        self._tokenizer = tokenizer_of(folder)
        # a second thread costs more than it saves on a short text, and much more if other processes need the core
        self._threads = ThreadpoolController()
        # the limit applies to the process: releasing it while another thread computes would change that one's last
        # digits
        self._alone = Lock()

    def encode(self, text: str) -> list[float]:
        """The unit vector of a text."""
        tokens = self._tokenizer.encode(readable(text)).ids
        with self._alone, self._threads.limit(limits=1, user_api="blas"):
            mean = self._states(tokens).mean(axis=0)
        return [float(x) for x in mean / np.linalg.norm(mean)]

    def _states(self, tokens: list[int]) -> Floats:
        """The output of the last layer for each token."""
        count, of = len(tokens), self._weights
        words, places = of["embeddings.word_embeddings.weight"], of["embeddings.position_embeddings.weight"]
        kinds = of["embeddings.token_type_embeddings.weight"]
        states = self._normalised(words[tokens] + places[:count] + kinds[0], "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            seen = self._linear(self._attention(states, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
            states = self._normalised(states + seen, f"{layer}.attention.output.LayerNorm")
            inner = self._linear(_gelu(self._linear(states, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
            states = self._normalised(states + inner, f"{layer}.output.LayerNorm")
        return states

    def _attention(self, states: Floats, name: str) -> Floats:
        query, key, value = (
            self._linear(states, f"{name}.{part}").reshape(-1, HEADS, HEAD_SIZE).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        weights = query @ key.transpose(0, 2, 1) * np.float32(HEAD_SIZE**-0.5)
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        seen: Floats = (weights @ value).transpose(1, 0, 2).reshape(-1, HEADS * HEAD_SIZE)
        return seen

    def _linear(self, states: Floats, name: str) -> Floats:
        # the weights are on the left, so that they are read in order, which takes three fifths of the time
        return (self._weights[f"{name}.weight"] @ states.T).T + self._weights[f"{name}.bias"]

    def _normalised(self, states: Floats, name: str) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        centred /= np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        scaled: Floats = centred * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return scaled


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


def _gelu(x: Floats) -> Floats:
    """x times the normal cumulative distribution at x: the exact form, with which the model was trained."""
    z = np.abs(x) * np.float32(0.5**0.5)
    part = 1 / (1 + _ERF_SCALE * z)
    series = np.zeros_like(part)
    for factor in _ERF:
        series = (series + factor) * part
    activated: Floats = x * np.float32(0.5) * (1 + np.copysign(1 - series * np.exp(-z * z), x))
    return activated


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
