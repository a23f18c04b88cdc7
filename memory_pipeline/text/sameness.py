"""From when two short texts say the same: one question, asked of different texts for different reasons.

Each reason is a preset with the figures that it was chosen by. Vectors are compared where both texts have one and are
in a script that the model knows, else words; in another language than English, texts without a common word never say
the same. Two texts that contradict each other never say the same: where lines may
do that, `wording.contradict` is asked as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_pipeline.text.embedding_models import MINILM_COSINES
from memory_pipeline.text.languages.identify import ENGLISH, language_of
from memory_pipeline.text.similarity import content_words, is_latin, overlap
from memory_pipeline.text.specifics import specifics


class Signature(NamedTuple):
    """What of a text is compared, so that it is worked out once."""

    words: frozenset[str]
    specifics: frozenset[str]


@dataclass(frozen=True)
class Sameness:
    """From when two texts say the same."""

    overlap: float
    """Shared words per word of both."""
    cosine: float = math.inf
    """Of their vectors, by the one model that was measured; infinite where no vectors are compared."""
    needs_specifics: bool = False
    """Whether both must have the very same names and numbers."""

    def signature(self, text: str) -> Signature:
        """A text without any word is a word itself."""
        named = frozenset(specifics(text)) if self.needs_specifics else frozenset[str]()
        return Signature(content_words(text) or frozenset({text}), named)

    def holds(self, one: Signature, other: Signature) -> bool:
        """Whether they say the same, by what their texts have in common."""
        return one.specifics == other.specifics and self.by_words(one.words, other.words)

    def by_words(self, one: frozenset[str], other: frozenset[str]) -> bool:
        """Whether texts with these words of content do."""
        return overlap(one, other) >= self.overlap


OBSERVED = Sameness(overlap=0.5, cosine=MINILM_COSINES.observed)
"""Observations of some days, which become one line. Of short sentences, paraphrased rules lie above this cosine,
neighbours below."""
DISTILLED = Sameness(overlap=0.5)
"""Lines of a day, week or month, where besides all words of the one that goes stand in the one that stays: as for
observations without vectors."""
OFFERED = Sameness(overlap=0.5, cosine=MINILM_COSINES.offered)
"""A line, and what was offered before or stands in MEMORY.md. The cosine is a little lower than where observations are
merged: of two lines that are nearly the same, the reviewer is asked about one."""
IN_MEMORY = Sameness(overlap=0.8)
"""A line as it was offered, and one of MEMORY.md when it is approved. An edited text is refused only when it is the
same: the user has seen what they wrote."""
AUDITED = Sameness(overlap=0.6)
"""A line of a memory file, and a sentence that somebody said: more than for lines that a reviewer looks at, since an
audit says that it is theirs."""
SAID_AGAIN = Sameness(overlap=0.6)
"""Corrections of two sessions, without a model that groups them: nearly the same words."""
WRITTEN_TWICE_BY_OBSERVER = Sameness(overlap=0.9, needs_specifics=True)
"""Two facts in a model's answers about one window."""
WRITTEN_TWICE_BY_REFLECTOR = Sameness(overlap=0.6, needs_specifics=True)
"""Two lines of a section in a model's answers about a day."""

SAYS_NOTHING_NEW = 0.85
"""Share of a unit's words, by their rarity, that a unit which is kept has already, from which the extractive observer
leaves it out."""
CARRIED = 0.4
"""Share of a model's line, by the rarity of its words, that its observations must have. The rest is how it is told. Of
facts that two careful readers wrote down of the same session, each in their own words, 97 % pass beside the other's,
and under 1 % beside another fact."""
SAYING = 0.15
"""Share of a model's line that one observation must have to count as one that says it."""
MIN_SHARE_IN_CLAUSE = 0.5
"""Share of its words that an older observation must have in the clause that has ended: the rest is lost with it."""


def groups(
    ids: Sequence[str],
    texts: Mapping[str, str],
    vectors: Mapping[str, Sequence[float]],
    sameness: Sameness,
    differ: Callable[[str, str], bool] | None = None,
) -> list[list[str]]:
    """Put each id into the first group whose first member it resembles, else into a new one.

    Two ids that `differ`, the second one that of a first member, are not in one group however much they resemble.

    The order of `ids` decides who leads: give the best first. Comparing with the leader only keeps a group
    about one thing; chains of neighbours drift.
    """
    import numpy as np  # not on import: a command that groups nothing need not wait for it

    found: list[list[str]] = []
    vectors = {i: vectors[i] for i in ids if i in vectors and is_latin(texts[i])}
    words = {i: content_words(texts[i]) for i in ids}
    foreign = {i for i in vectors if language_of(texts[i]) != ENGLISH}
    unit = {i: np.asarray(vector, dtype=np.float32) for i, vector in vectors.items()}
    for i in ids:
        for group in found:
            leader = group[0]
            if i in unit and leader in unit:
                same = float(unit[i] @ unit[leader]) >= sameness.cosine and not (
                    {i, leader} & foreign and words[i].isdisjoint(words[leader])
                )
            else:
                same = sameness.by_words(words[i], words[leader])
            if same and not (differ and differ(i, leader)):
                group.append(i)
                break
        else:
            found.append([i])
    return found
