"""Lines that need no offering: what was offered before and what stands in MEMORY.md, found by words and by vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.scope import are_apart
from memory_pipeline.text.languages.identify import ENGLISH, language_of
from memory_pipeline.text.sameness import OFFERED, Sameness
from memory_pipeline.text.similarity import content_words, is_latin, overlap
from memory_pipeline.text.specifics import differ_in_numbers
from memory_pipeline.text.wording import contradict, opposes, retracted_names, takes_place_of

if TYPE_CHECKING:
    import numpy as np

_BY_HAND = "~"
"""Sorts behind every proposal's id."""


@dataclass(frozen=True)
class Known:
    """A known line: a proposal, or one of MEMORY.md without proposal (`proposal_id` is None)."""

    proposal_id: str | None
    text: str
    projects: tuple[str, ...] = ()


Differ = Callable[[str, Sequence[str], Known], bool]
"""Whether a text that was said in these projects says something else than a line that is like it."""


def _differ(text: str, projects: Sequence[str], known: Known) -> bool:
    return (opposes if are_apart(projects, known.projects) else contradict)(text, known.text)


@dataclass
class KnownLines:
    """Grows as lines are offered. A search looks only at lines that share a word, and at all vectors at once."""

    lines: list[Known] = field(default_factory=list)
    _words: list[frozenset[str]] = field(default_factory=list)
    _having: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _of_source: dict[str, int] = field(default_factory=dict)
    _taking: list[tuple[frozenset[str], int]] = field(default_factory=list)
    _with_vector: list[int] = field(default_factory=list)
    _vectors: list[np.ndarray] = field(default_factory=list)
    _matrix: np.ndarray | None = None

    def add(self, known: Known, sources: Iterable[str] = (), vector: Sequence[float] | None = None) -> None:
        index = len(self.lines)
        words = content_words(known.text)
        self.lines.append(known)
        self._words.append(words)
        for word in words:
            self._having[word].append(index)
        self._taking += [(named, index) for named in retracted_names(known.text)]
        for source in sources:
            self._of_source.setdefault(source, index)
        if vector is not None and is_latin(known.text):
            import numpy as np  # not on import: most commands compare no vectors

            self._with_vector.append(index)
            self._vectors.append(np.asarray(vector, dtype=np.float32))
            self._matrix = None

    def from_sources(self, sources: Iterable[str]) -> Known | None:
        """The line that was made from one of these."""
        return next((self.lines[self._of_source[s]] for s in sources if s in self._of_source), None)

    def exactly(self, text: str) -> Known | None:
        """The line that has these words."""
        return next((known for known in self.lines if known.text == text), None)

    def same(
        self,
        text: str,
        vector: Sequence[float] | None = None,
        projects: Sequence[str] = (),
        *,
        sameness: Sameness = OFFERED,
        differ: Differ = _differ,
    ) -> Known | None:
        """The line that says the same and is most like the text, if there is one; never one from which it differs: by
        default one that it contradicts, or of another project one that refuses what it does."""
        words = content_words(text)
        shared = {index for word in words for index in self._having.get(word, ())}
        # of two that are equally like it the same one, in whatever order a run that was interrupted came to know them
        near = ((-overlap(words, self._words[i]), self.lines[i].proposal_id or _BY_HAND, i) for i in shared)
        for _, _, index in sorted(found for found in near if -found[0] >= sameness.overlap):
            if not differ(text, projects, self.lines[index]):
                return self.lines[index]
        if vector is None or not self._vectors or not is_latin(text):
            return None
        import numpy as np

        if self._matrix is None:
            self._matrix = np.stack(self._vectors)
        likeness = self._matrix @ np.asarray(vector, dtype=np.float32)
        for place in np.argsort(-likeness)[: int((likeness >= sameness.cosine).sum())]:
            known = self.lines[self._with_vector[int(place)]]
            is_foreign = language_of(text) != ENGLISH or language_of(known.text) != ENGLISH
            if is_foreign and words.isdisjoint(self._words[self._with_vector[int(place)]]):
                continue  # the model is for English
            if not (differ_in_numbers(text, known.text) or differ(text, projects, known)):
                return known
        return None

    def replaced_by(self, text: str) -> list[Known]:
        """The lines whose place the text takes by its words."""
        near = {
            index
            for named in retracted_names(text)
            for index in set.intersection(*(set(self._having.get(word, ())) for word in named))
        }
        return [self.lines[i] for i in sorted(near) if takes_place_of(text, self.lines[i].text)]

    def replacing(self, text: str) -> list[Known]:
        """The lines that have taken the text's place by their words."""
        words = content_words(text)
        near = dict.fromkeys(index for named, index in self._taking if named <= words)
        return [self.lines[i] for i in near if takes_place_of(self.lines[i].text, text)]
