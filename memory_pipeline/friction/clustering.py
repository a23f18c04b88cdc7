"""Which words of users are about one thing: by their vectors, their rare words, and what was done before them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_pipeline.friction.weights import SAME_THING, weights_of
from memory_pipeline.text.languages.identify import language_of
from memory_pipeline.text.phrases import DIMENSION
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.wording import retracted_words, stem

Vector = Any
"""A row of numbers, as `PhraseEncoder` gives it."""
Matrix = Any
"""An array of two dimensions."""

JOINED = 0.4
"""Mean alikeness, from 0 to 1, from which groups are joined; two texts that are just alike enough have this one."""
SAME_COSINE, SAME_WORDS, SAME_BOTH = 0.5, 0.27, 0.68
"""Of the vectors of `phrases.py`, of their words, weighed by how rare they are, and the sum of both, from which two
texts are about one thing whatever was done before them."""
SAME_GIVEN_UP, OTHER_GIVEN_UP = 0.6, 0.15
"""Alikeness, at least and at most, of two that give up the same thing, and different things."""
MIN_RARITY = 0.25
"""Of a deed, from 0 to 1, below which it tells nothing: nearly every second remark came after it."""
BLOCK = 1_024
"""Rows that are compared with all others at a time."""
MAX_COMPONENT = 4_000
"""Texts that are joined at a time; of more that all resemble each other, the newest."""
WEAK = frozenset(
    stem(word)
    for word in """
    use uses please always never again still instead want need stop keep told said tell make run just not don't do ever
    every must should would could like way thing one everything anything something here there now only also even
    already many time times before after first remember ask think know see look right wrong correct okay ok yes no nope
    wait that's it's you're i'm write put take goes go through behind everywhere without why did you've we've let's
    wieder schon bitte alles nimm mach machen arbeiten arbeite gesagt nochmal doch hast habe haben dafür davon falsch
    nutze nutzen benutzen erst dann weg ist's einzeln
    otra vez haz hacer hazlo usa usar usamos aquí todo tiene tienen dije por favor nada
    sí así ser estar ja genau so gut yes exactly bien vale justo fine good great oui bon
    encore fois utilise utiliser ici fais faire
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
"""Words that corrections share whatever they are about."""
_INNER = re.compile(r"[^\W_]{2,}")


def terms_of(text: str) -> frozenset[str]:
    """The words that tell what a text is about, each by one stem, so that two languages can share them; of names also
    their parts."""
    found = set()
    for word in content_words(text):
        found.add(stem(word))
        if not word.isalnum():
            found |= {stem(part) for part in _INNER.findall(word)}
    return frozenset(found - WEAK)


@dataclass(frozen=True)
class Words:
    """The terms of texts with their weight: the rarer a term is among what users said, the more it tells."""

    weights: Mapping[str, float]
    default: float
    deeds: Mapping[str, float]
    """The same of what agents had just done."""

    @classmethod
    def among(cls, texts: Sequence[str], did: Sequence[Collection[str]] = ()) -> Words:
        """The rarity of terms and deeds is that among these, which are those of the window."""
        return cls(rarity([terms_of(text) for text in texts]), math.log(1 + max(1, len(texts))), rarity(did))

    def of(self, text: str) -> dict[str, float]:
        """Unit vector of the text's terms."""
        return _unit({t: self.weights.get(t, self.default) for t in terms_of(text)})

    def rarity_of_deed(self, deed: str) -> float:
        """From 0 to 1, of what was done before a single text alone."""
        return self.deeds.get(deed, self.default) / self.default

    def of_deeds(self, did: Collection[str]) -> dict[str, float]:
        """Vector of what the agent had just done, of length 1 where none of it was done another time, else less."""
        most = self.default * math.sqrt(max(1, len(did)))
        return {deed: self.deeds.get(deed, self.default) / most for deed in did}


def rarity(found: Sequence[Collection[str]]) -> dict[str, float]:
    """The logarithm of how few of these have it, of each that one of them has."""
    seen = Counter(each for those in found for each in set(those))
    return {each: math.log(1 + len(found) / n) for each, n in seen.items()}


def _unit(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(w * w for w in weights.values()))
    return {each: w / length for each, w in weights.items()} if length else {}


def clusters(
    texts: Sequence[str],
    vectors: Sequence[Vector | None],
    words: Words,
    did: Sequence[Collection[str]] = (),
) -> list[list[int]]:
    """Positions of the texts that are about one thing, in groups of two or more, by average linkage.

    ``vectors`` are those of `PhraseEncoder`, None where there is none; ``did`` is what was done before each.
    """
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    # copies of one text are one point, or a thousand of them would take a minute
    first: dict[str, int] = {}
    copies: dict[int, list[int]] = {}
    for position, text in enumerate(texts):
        copies.setdefault(first.setdefault(" ".join(text.lower().split()), position), []).append(position)
    kept = list(copies)
    if not kept:
        return []
    done = [did[i] if did else () for i in kept]
    compared = Compared([texts[i] for i in kept], [vectors[i] for i in kept], words, done)
    found: list[list[int]] = []
    for component in compared.components():
        groups: list[list[int]]
        if len(component) == 1:
            groups = [component]
        else:
            component = component[-MAX_COMPONENT:]
            distances = 1 - compared.between(component, component)
            np.fill_diagonal(distances, 0)
            tree = linkage(squareform(np.maximum(distances, 0), checks=False), method="average")
            labels = fcluster(tree, t=1 - JOINED, criterion="distance")
            by_label: dict[int, list[int]] = {}
            for member, label in zip(component, labels, strict=True):
                by_label.setdefault(int(label), []).append(member)
            groups = list(by_label.values())
        found += [sorted(p for i in group for p in copies[kept[i]]) for group in groups]
    return sorted(group for group in found if len(group) > 1)


def matrix_of(weights: Sequence[Mapping[str, float]]) -> Any:
    """A row of each, sparse; a column of each name."""
    import numpy as np
    from scipy.sparse import csr_matrix

    numbers: dict[str, int] = {}
    rows, columns, values = [], [], []
    for row, of_row in enumerate(weights):
        for each, weight in sorted(of_row.items()):
            rows.append(row)
            columns.append(numbers.setdefault(each, len(numbers)))
            values.append(weight)
    return csr_matrix((values, (rows, columns)), shape=(len(weights), max(1, len(numbers))), dtype=np.float32)


class Compared:
    """Texts with what is compared of them."""

    def __init__(
        self,
        texts: Sequence[str],
        vectors: Sequence[Vector | None],
        words: Words,
        did: Sequence[Collection[str]],
    ) -> None:
        import numpy as np

        self.vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for i, vector in enumerate(vectors):
            if vector is not None:
                self.vectors[i] = vector
        self.languages = np.array([language_of(text) for text in texts])
        self.words = matrix_of([words.of(text) for text in texts])
        self.deeds = matrix_of([words.of_deeds(deeds) for deeds in did])
        self.given_up = matrix_of([dict.fromkeys(retracted_words(text), 1.0) for text in texts])
        self.gives_up = np.asarray(self.given_up.sum(axis=1)).ravel() > 0
        after: dict[str, list[int]] = defaultdict(list)
        for position, deeds in enumerate(did):
            for deed in deeds:
                after[deed].append(position)
        shared = {deed: words.rarity_of_deed(deed) for deed, positions in after.items() if len(positions) > 1}
        self.after = [
            (rare, np.array(after[deed]))
            for deed, rare in sorted(shared.items(), key=lambda item: (item[1], item[0]))
            if rare >= MIN_RARITY
        ]
        """Deeds with the positions of the texts after them, the rarest last."""

    def features(self, some: Sequence[int], others: Sequence[int]) -> dict[str, Matrix]:
        """What tells whether each of some and of the others are about one thing, by the names of `weights.json`."""
        import numpy as np

        deeds = np.asarray((self.deeds[some] @ self.deeds[others].T).todense())
        other_language = self.languages[some][:, None] != self.languages[others][None, :]
        return {
            "vectors": np.maximum(self.vectors[some] @ self.vectors[others].T, 0),
            "deeds": deeds,
            "other_language": other_language.astype(np.float32),
            "rarest_deed": self.rarest_deed(some, others),
        }

    def rarest_deed(self, some: Sequence[int], others: Sequence[int]) -> Matrix:
        """How rare the rarest deed is that was done before both, from 0 to 1."""
        import numpy as np

        rows, columns = np.full((2, self.vectors.shape[0]), -1)
        rows[some], columns[others] = np.arange(len(some)), np.arange(len(others))
        found = np.zeros((len(some), len(others)), dtype=np.float32)
        for rare, positions in self.after:
            row, column = rows[positions], columns[positions]
            found[np.ix_(row[row >= 0], column[column >= 0])] = rare
        return found

    def between(self, some: Sequence[int], others: Sequence[int]) -> Matrix:
        """How alike each of some is to each of the others: 0 to 1, from `JOINED` they are about one thing."""
        import numpy as np

        found = self.features(some, others)
        vectors, words = found["vectors"], np.asarray((self.words[some] @ self.words[others].T).todense())
        said = JOINED * np.maximum.reduce([vectors / SAME_COSINE, words / SAME_WORDS, (vectors + words) / SAME_BOTH])
        both = self.gives_up[some][:, None] & self.gives_up[others][None, :]
        same = np.asarray((self.given_up[some] @ self.given_up[others].T).todense()) > 0
        said = np.where(same, np.maximum(said, SAME_GIVEN_UP), said)
        said = np.where(both & ~same, np.minimum(said, OTHER_GIVEN_UP), said)
        likely = 1 / (1 + np.exp(-weights_of(SAME_THING).logit(found)))
        return np.clip(np.maximum(said, likely), 0, 1)

    def components(self) -> list[list[int]]:
        """Texts that are joined by a chain of likeness, which are all that have to be compared more closely."""
        import numpy as np
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        count = self.vectors.shape[0]
        everything = range(count)
        rows, columns = [], []
        for start in range(0, count, BLOCK):
            some = range(start, min(count, start + BLOCK))
            one, other = np.nonzero(self.between(some, everything) >= JOINED)
            rows.append(one + start)
            columns.append(other)
        links = coo_matrix(
            (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count)
        )
        _, labels = connected_components(links, directed=False)
        found: dict[int, list[int]] = {}
        for member, label in enumerate(labels):
            found.setdefault(int(label), []).append(member)
        return list(found.values())
