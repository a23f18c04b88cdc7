"""The bundled MiniLM in torch, for many texts at once: without padding, and in bfloat16 if the processor supports it.

sentence-transformers pads the texts of a batch to the length of the longest. Here the texts are concatenated, sorted by
length: operations on single tokens are one multiplication over all of them, and attention is computed for groups of
texts with exactly the same length. This is two to four times as fast (`benchmarks/embedding.py`).

A vector does not depend on the other texts, except for rounding in the seventh place; the same texts on the same
machine give the same bytes. In bfloat16 only the factors of multiplications are rounded, not the sums: cosines to the
vectors of sentence-transformers were .9999 and more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as nn
from safetensors.torch import load_file
from torch import Tensor

from memory_pipeline.text.minilm import EPSILON, HEAD_SIZE, HEADS, LAYERS, readable, tokenizer_of

_SIZE = HEADS * HEAD_SIZE
_SORTED_AT_ONCE = 4_096
"""Number of texts whose tokens are held in memory at once, to be sorted by length."""
_BATCH_TOKENS = 2_048
"""Tokens of a batch. No size from 1,024 to 8,192 is faster; a smaller one keeps the data between layers in the
processor's cache."""


class Linear(NamedTuple):
    """Weight and bias, as `torch.nn.functional.linear` and `layer_norm` take them."""

    weight: Tensor
    bias: Tensor


class _Layer(NamedTuple):
    attention: Linear
    """The weights of query, key and value, stacked."""
    seen: Linear
    after_attention: Linear
    wide: Linear
    narrow: Linear
    after: Linear


class MiniLMBatches:
    """all-MiniLM-L6-v2, loaded from its folder. Raises whatever a damaged file leads to."""

    def __init__(self, folder: Path, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype or fastest_dtype()
        weights = load_file(folder / "model.safetensors")
        self._tokenizer = tokenizer_of(folder)

        def norm(name: str) -> Linear:
            return Linear(weights[f"{name}.weight"], weights[f"{name}.bias"])

        def linear(*names: str) -> Linear:
            parts = [norm(name) for name in names]
            return Linear(*(torch.cat(tensors).to(self.dtype) for tensors in zip(*parts, strict=True)))

        self._words = weights["embeddings.word_embeddings.weight"]
        self._places = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        self._first = norm("embeddings.LayerNorm")
        self._layers = [
            _Layer(
                attention=linear(*(f"{layer}.attention.self.{part}" for part in ("query", "key", "value"))),
                seen=linear(f"{layer}.attention.output.dense"),
                after_attention=norm(f"{layer}.attention.output.LayerNorm"),
                wide=linear(f"{layer}.intermediate.dense"),
                narrow=linear(f"{layer}.output.dense"),
                after=norm(f"{layer}.output.LayerNorm"),
            )
            for layer in (f"encoder.layer.{number}" for number in range(LAYERS))
        ]

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit vectors, one per text, in the order of the texts."""
        found: list[list[float]] = []
        for start in range(0, len(texts), _SORTED_AT_ONCE):
            some = [readable(text) for text in texts[start : start + _SORTED_AT_ONCE]]
            tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(some)]
            vectors = torch.empty(len(some), _SIZE)
            for numbers in _batches([len(t) for t in tokens]):
                vectors[numbers] = self._vectors([tokens[number] for number in numbers])
            found += vectors.tolist()
        return found

    def _vectors(self, texts: list[list[int]]) -> Tensor:
        """The vectors of texts given as tokens, sorted by number of tokens."""
        lengths = [len(tokens) for tokens in texts]
        words = torch.tensor([token for tokens in texts for token in tokens])
        places = torch.cat([torch.arange(length) for length in lengths])
        states = _normalised(self._words[words] + self._places[places], self._first)
        groups = [(length, len(list(same))) for length, same in groupby(lengths)]
        for layer in self._layers:
            seen = self._attention(nn.linear(states.to(self.dtype), *layer.attention), groups)
            states = _normalised(states + nn.linear(seen, *layer.seen), layer.after_attention)
            wide = nn.gelu(nn.linear(states.to(self.dtype), *layer.wide))
            states = _normalised(states + nn.linear(wide, *layer.narrow), layer.after)
        return nn.normalize(torch.stack([of_text.mean(dim=0) for of_text in torch.split(states, lengths)]))

    def _attention(self, factors: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """The attention of each token within its own text; `groups` are pairs of a length and the number of texts with
        it."""
        seen = torch.empty(len(factors), _SIZE, dtype=self.dtype)
        start = 0
        for length, count in groups:
            end = start + length * count
            query, key, value = factors[start:end].view(count, length, 3, HEADS, HEAD_SIZE).permute(2, 0, 3, 1, 4)
            attended = nn.scaled_dot_product_attention(query, key, value)
            seen[start:end].view(count, length, HEADS, HEAD_SIZE).copy_(attended.transpose(1, 2))
            start = end
        return seen


def fastest_dtype() -> torch.dtype:
    """bfloat16 if the processor has instructions for it; emulated, it is slower than float32."""
    able = torch.cpu.get_capabilities()
    return torch.bfloat16 if able.get("avx512_bf16") or able.get("amx_bf16") else torch.float32


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


def _normalised(states: Tensor, norm: Linear) -> Tensor:
    return nn.layer_norm(states, (_SIZE,), *norm, eps=float(EPSILON))
