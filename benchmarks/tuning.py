"""Fine-tuning the last layers of the bundled sentence model on units in their context, with a head for each target."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from benchmarks.fitting import WEIGHT_OF_HIGH, Labelled
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.text.encoder import BATCH, bundled_folder

TUNED = 2
"""Layers, of six, that are trained. What those below make of a unit is made once."""
RATE, RATE_OF_HEAD, WARM, DECAY, AT_ONCE = 1e-4, 1e-3, 0.1, 0.01, 32
CONTEXT, LONGEST = 24, 96
"""Tokens of the message before, and of the reply; and of the unit."""
SAYS = {"said": "assistant", "paste": "user pastes", "answer": "user accepts", "choice": "user chooses"}
TARGETS = ("a labelled fact", "a high fact")


@dataclass(frozen=True)
class Example:
    """A unit with its hidden states below the tuned layers, of which `start` to `end` are of its own tokens."""

    number: int
    start: int
    end: int
    states: Any
    labels: Any
    offset: Any
    """Logits of the targets' shares of its session."""


def targets(data: Labelled) -> np.ndarray:
    """Whether each unit carries a labelled fact, and a high one."""
    return np.stack([data.is_fact, data.weight == WEIGHT_OF_HIGH], axis=1).astype(np.float32)


def context(data: Labelled, unit: Unit) -> tuple[str, str]:
    """What the other side said before and after."""
    messages = data.found.window.messages
    other = "assistant" if messages[unit.position].role == "user" else "user"
    before = (m.own for m in reversed(messages[: unit.position]) if m.role == other)
    after = (m.own for m in messages[unit.position + 1 :] if m.role == other)
    return next(before, "").strip(), next(after, "").strip()


class Tuned:
    """The bundled model: its lower layers as they are, and copies of the others that are trained."""

    def __init__(self) -> None:
        from sentence_transformers import SentenceTransformer

        model: Any = SentenceTransformer(str(bundled_folder()), device="cpu", local_files_only=True)
        self.tokenizer, self.bert = model.tokenizer, model[0].auto_model.eval()

    def tokens(self, data: Labelled, unit: Unit) -> tuple[list[int], int, int]:
        """Who says it and where, the message before, the unit, the reply; and where the unit's own start and end."""
        before, after = context(data, unit)
        is_model, separator = unit.form == "said", [self.tokenizer.sep_token_id]
        who = f"{SAYS.get(unit.form, 'user')}, {10 * unit.position // len(data.found.window.messages)} of 10:"
        # a user begins with what they want, the model ends with what it asks
        read = [who, before[: 6 * CONTEXT] if is_model else before[-6 * CONTEXT :], unit.text, after]
        first, asked, own, reply = self.tokenizer(read, add_special_tokens=False, verbose=False).input_ids
        asked = asked[:CONTEXT] if is_model else asked[-CONTEXT:]
        head, own = [self.tokenizer.cls_token_id, *first, *asked, *separator], own[:LONGEST] or separator
        return [*head, *own, *separator, *reply[:CONTEXT], *separator], len(head), len(head) + len(own)

    def examples(self, data: Labelled, numbers: Sequence[int]) -> Iterator[Example]:
        labels = torch.tensor(targets(data))
        offset = torch.logit((labels[list(numbers)].sum(0) + 0.5) / (len(numbers) + 1))
        read = sorted(((*self.tokens(data, data.found.units[n]), n) for n in numbers), key=lambda each: len(each[0]))
        for some in (read[i : i + BATCH] for i in range(0, len(read), BATCH)):
            ids = pad_sequence([torch.tensor(each[0]) for each in some], batch_first=True)
            with torch.no_grad():
                found = _through(self.bert.encoder.layer[:-TUNED], self.bert.embeddings(ids), ids != 0)
            for (own, start, end, n), states in zip(some, found, strict=True):
                yield Example(n, start, end, states[: len(own)].half(), labels[n], offset)

    def fitted(self, examples: Sequence[Example], epochs: int, seed: int) -> tuple[Any, Any, list[float]]:
        """Layers and head trained on these, and the loss of each step."""
        losses = []
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        layers = copy.deepcopy(self.bert.encoder.layer[-TUNED:]).train()
        head = torch.nn.Linear(self.bert.config.hidden_size, len(TARGETS))
        groups = [{"params": layers.parameters(), "lr": RATE}, {"params": head.parameters(), "lr": RATE_OF_HEAD}]
        optimizer = torch.optim.AdamW(groups, weight_decay=DECAY)
        order = [batch for _ in range(epochs) for batch in _batches(examples, rng)]
        warm, last = WARM * len(order), len(order)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (last - step) / (last - warm))
        )
        for batch in order:
            labels = torch.stack([e.labels for e in batch])
            weight = torch.ones_like(labels)
            weight[:, 0] += (WEIGHT_OF_HIGH - 1) * labels[:, 1]
            logits = judged(layers, head, batch) + torch.stack([e.offset for e in batch])
            optimizer.zero_grad()
            loss: Any = binary_cross_entropy_with_logits(logits, labels, weight)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*layers.parameters(), *head.parameters()], 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return layers.eval(), head, losses


def judged(layers: Any, head: Any, batch: Sequence[Example]) -> Any:
    """A logit for each target of each."""
    states = pad_sequence([e.states.float() for e in batch], batch_first=True)
    places = torch.arange(states.shape[1])
    is_there = torch.stack([places < len(e.states) for e in batch])
    is_own = torch.stack([(places >= e.start) & (places < e.end) for e in batch])[:, :, None]
    return head((_through(layers, states, is_there) * is_own).sum(1) / is_own.sum(1))


def _through(layers: Any, states: Any, is_there: Any) -> Any:
    mask = torch.where(is_there, 0.0, torch.finfo(torch.float32).min)[:, None, None, :]
    for layer in layers:
        states = layer(states, mask)
    return states


def _batches(examples: Sequence[Example], rng: np.random.Generator) -> list[list[Example]]:
    """Of like length, in an order drawn by chance."""
    order, chunk = rng.permutation(len(examples)), 16 * AT_ONCE
    chunks = [sorted(order[i : i + chunk], key=lambda n: len(examples[n].states)) for i in range(0, len(order), chunk)]
    found = [[examples[n] for n in some[i : i + AT_ONCE]] for some in chunks for i in range(0, len(some), AT_ONCE)]
    return [found[i] for i in rng.permutation(len(found))]
