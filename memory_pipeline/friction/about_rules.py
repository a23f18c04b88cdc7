"""Which line of MEMORY.md, AGENTS.md or CLAUDE.md something that users said is about, in whatever words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_pipeline.friction.clustering import Matrix, Vector, Words, matrix_of
from memory_pipeline.friction.deeds import written_in
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.said import AGAIN
from memory_pipeline.friction.weights import ABOUT_RULE, weights_of
from memory_pipeline.text.phrases import DIMENSION
from memory_pipeline.text.wording import breaks_with, retracted_words

SAME_GIVEN_UP = 0.9
"""How likely words are about a line that gives up the same thing, at least."""
LEAST = 0.05
"""How likely a line must be to be looked at further."""


class AboutRules:
    """Each thing that was said beside each line; `vectors` and `words` tell how alike they are, a row for each thing
    and a column for each line."""

    def __init__(
        self,
        rules: Sequence[Rule],
        rule_vectors: Mapping[str, Vector],
        events: Sequence[FrictionEvent],
        vectors: Mapping[str, Vector],
        words: Words,
    ) -> None:
        import numpy as np

        self.rules, self.events = rules, events
        self._row = {e.event_id: row for row, e in enumerate(events)}
        count, terms = len(rules), [words.of(rule.text) for rule in rules]
        own = _rows(rule_vectors, [rule.rule_id for rule in rules])
        self.vectors = np.maximum(_rows(vectors, [e.event_id for e in events]) @ own.T, 0)
        said = matrix_of([*terms, *(words.of(e.text) for e in events)])
        self.words = (said[count:] @ said[:count].T).toarray()
        done = matrix_of([*terms, *(dict.fromkeys(written_in(e.did), 1.0) for e in events)])
        self._deeds = (done[count:] @ done[:count].T).toarray()
        texts = [*(rule.text for rule in rules), *(e.text for e in events)]
        given_up = matrix_of([dict.fromkeys(retracted_words(text), 1.0) for text in texts])
        self._given_up = (given_up[count:] @ given_up[:count].T).toarray() > 0

    def features(self, members: Sequence[FrictionEvent]) -> dict[str, Matrix]:
        """What tells whether together they are about each of the lines, by the names of `weights.json`."""
        import numpy as np

        rows = [self._row[m.event_id] for m in members]
        nearest = -np.sort(-self.vectors[rows], axis=0)[: max(2, -(-len(rows) // 2))]
        return {
            "vectors": nearest.mean(axis=0),  # one that says it in words of its own speaks against nothing
            "most_words": self.words[rows].max(axis=0),
            "deeds": self._deeds[rows].mean(axis=0),
        }

    def likeliest(self, members: Sequence[FrictionEvent]) -> tuple[Rule | None, float]:
        """The line that together they are about and that holds for most of them; how likely, from 0 to 1."""
        import numpy as np

        if not self.rules:
            return None, 0.0
        rows = [self._row[m.event_id] for m in members]
        likely = 1 / (1 + np.exp(-weights_of(ABOUT_RULE).logit(self.features(members))))
        likely = np.where(2 * self._given_up[rows].sum(axis=0) > len(rows), np.maximum(likely, SAME_GIVEN_UP), likely)
        for position in np.argsort(-likely, kind="stable"):
            if likely[position] < LEAST:
                break
            if _holds_for(self.rules[position], members):
                return self.rules[position], float(likely[position])
        return None, 0.0


def _rows(vectors: Mapping[str, Vector], ids: Sequence[str]) -> Matrix:
    import numpy as np

    found = np.zeros((len(ids), DIMENSION), dtype=np.float32)
    for row, one in enumerate(ids):
        if one in vectors:
            found[row] = vectors[one]
    return found


def _holds_for(rule: Rule, members: Sequence[FrictionEvent]) -> bool:
    """Whether it held where and when most of them were said, and they do not go against it."""
    own = [m for m in members if rule.reaches(m)]
    against = sum(not AGAIN.search(m.text) and breaks_with(m.text, rule.text) for m in own)
    return 2 * len(own) > len(members) and 2 * against <= len(own)
