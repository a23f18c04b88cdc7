"""Lines that need not be offered: earlier proposals and lines of MEMORY.md, found by words and by vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from memory_pipeline.scope import are_apart
from memory_pipeline.text.relation import OFFERED, Likeness, is_same, replaces, statement
from memory_pipeline.text.similarity import is_latin, overlap

if TYPE_CHECKING:
    import numpy as np

_BY_HAND = "~"
"""A key that sorts after every proposal id."""


@dataclass(frozen=True)
class Known:
    """A known line: a proposal, or a line of MEMORY.md without a proposal (`proposal_id` is None)."""

    proposal_id: str | None
    text: str
    projects: tuple[str, ...] = ()


@dataclass
class KnownLines:
    """The known lines, to which offered ones are added. A search compares only lines that share a word, and all vectors
    at once."""

    lines: list[Known] = field(default_factory=list)
    _having: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _of_source: dict[str, int] = field(default_factory=dict)
    _with_vector: list[int] = field(default_factory=list)
    _vectors: list[np.ndarray] = field(default_factory=list)
    _matrix: np.ndarray | None = None

    def add(self, known: Known, sources: Iterable[str] = (), vector: Sequence[float] | None = None) -> None:
        index = len(self.lines)
        self.lines.append(known)
        for word in statement(known.text).stems:
            self._having[word].append(index)
        for source in sources:
            self._of_source.setdefault(source, index)
        if vector is not None and is_latin(known.text):
            import numpy as np  # imported here: most commands compare no vectors

            self._with_vector.append(index)
            self._vectors.append(np.asarray(vector, dtype=np.float32))
            self._matrix = None

    def from_sources(self, sources: Iterable[str]) -> Known | None:
        """The line with one of these sources, or None."""
        return next((self.lines[self._of_source[s]] for s in sources if s in self._of_source), None)

    def exactly(self, text: str) -> Known | None:
        """The line with exactly this text, or None."""
        return next((known for known in self.lines if known.text == text), None)

    def same(
        self,
        text: str,
        vector: Sequence[float] | None = None,
        projects: Sequence[str] = (),
        *,
        like: Likeness = OFFERED,
        cautious: bool = False,
    ) -> Known | None:
        """The most similar line with the same meaning, or None.

        A line of another project must not contradict the text; with `cautious` no line may, and a line of another
        project never has the same meaning.
        """
        for known, cosine in chain(self._by_words(text, like), self._by_vector(text, vector, like)):
            apart = are_apart(projects, known.projects)
            if cautious and apart:
                continue
            if is_same(text, known.text, like, cosine=cosine, cautious=cautious or apart):
                return known
        return None

    def replaced_by(self, text: str) -> list[Known]:
        """The lines that the text replaces, judged by words."""
        return [known for known in self._near(text) if replaces(text, known.text)]

    def replacing(self, text: str) -> list[Known]:
        """The lines that replace the text, judged by words."""
        return [known for known in self._near(text) if replaces(known.text, text)]

    def _near(self, text: str) -> list[Known]:
        """The lines that share a stem with the text."""
        return [
            self.lines[i] for i in sorted({i for word in statement(text).stems for i in self._having.get(word, ())})
        ]

    def _by_words(self, text: str, like: Likeness) -> Iterator[tuple[Known, None]]:
        """The lines with enough words in common, the most similar first."""
        mine = statement(text).words
        found = ((overlap(mine, statement(known.text).words), known) for known in self._near(text))
        alike = ((share, known) for share, known in found if share >= like.overlap)
        # ties are broken by id, so that the result does not depend on the order in which an interrupted run added lines
        for _, known in sorted(alike, key=lambda one: (-one[0], one[1].proposal_id or _BY_HAND)):
            yield known, None

    def _by_vector(self, text: str, vector: Sequence[float] | None, like: Likeness) -> Iterator[tuple[Known, float]]:
        """The lines whose vector is near enough, the nearest first, with the cosine."""
        if vector is None or not self._vectors or not is_latin(text):
            return
        import numpy as np

        if self._matrix is None:
            self._matrix = np.stack(self._vectors)
        cosines = self._matrix @ np.asarray(vector, dtype=np.float32)
        for place in np.argsort(-cosines)[: int((cosines >= like.cosine).sum())]:
            yield self.lines[self._with_vector[int(place)]], float(cosines[place])
