"""Which words of users are about one thing: by their vectors, their rare words and the names in them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory_pipeline.text.languages.identify import ENGLISH, language_of
from memory_pipeline.text.similarity import content_words, is_latin
from memory_pipeline.text.wording import retracted_words, stem

if TYPE_CHECKING:
    import numpy as np

SAME_COSINE = 0.58
"""Of the bundled model, from which two corrections in English are about one thing."""
SAME_WORDS = 0.34
"""Cosine of their words, weighed by how rare they are, from which they are."""
SAME_BOTH = 0.75
"""Of both together."""
DID = 1.2
"""Weight of what the agent had just done, beside what is said of it."""
SAME_ALL = 0.75
"""Of their vectors, their words and that together."""
MIN_SAID = 0.15
"""Of their vectors and words alone, without which the same deed before them tells nothing."""
DID_PLAINLY = 0.3
"""Alikeness of deeds from which vectors are believed in any language."""
DIFFERENT = 0.3
"""Of two that give up different things, however alike they sound."""
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
        return cls(_rarity([terms_of(text) for text in texts]), math.log(1 + max(1, len(texts))), _rarity(did))

    def of(self, text: str) -> dict[str, float]:
        """Unit vector of the text's terms."""
        return _unit({t: self.weights.get(t, self.default) for t in terms_of(text)})

    def of_deeds(self, did: Collection[str]) -> dict[str, float]:
        """Vector of what the agent had just done, of length 1 where none of it was done another time, else less."""
        most = self.default * math.sqrt(max(1, len(did)))
        return {deed: self.deeds.get(deed, self.default) / most for deed in did}


def _rarity(found: Sequence[Collection[str]]) -> dict[str, float]:
    seen = Counter(each for those in found for each in set(those))
    return {each: math.log(1 + len(found) / n) for each, n in seen.items()}


def _unit(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(w * w for w in weights.values()))
    return {each: w / length for each, w in weights.items()} if length else {}


def clusters(
    texts: Sequence[str],
    vectors: Sequence[Sequence[float] | None],
    words: Words,
    did: Sequence[Collection[str]] = (),
) -> list[list[int]]:
    """Positions of the texts that are about one thing, in groups of two or more, by average linkage.

    ``vectors`` are unit vectors of the bundled model, None where there is none.
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
    compared = _Compared([texts[i] for i in kept], [vectors[i] for i in kept], words, done)
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


JOINED = 0.5
"""Mean alikeness from which groups are joined; two texts that are just alike enough have this one."""


def _matrix(weights: Sequence[Mapping[str, float]]) -> Any:
    """A row of each, sparse."""
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


class _Compared:
    """Texts with what is compared of them."""

    def __init__(
        self,
        texts: Sequence[str],
        vectors: Sequence[Sequence[float] | None],
        words: Words,
        did: Sequence[Collection[str]],
    ) -> None:
        import numpy as np

        dimension = next((len(v) for v in vectors if v is not None), 1)
        usable = [v is not None and is_latin(t) for t, v in zip(texts, vectors, strict=True)]
        self.dense = np.zeros((len(texts), dimension), dtype=np.float32)
        for i, vector in enumerate(vectors):
            if usable[i]:
                self.dense[i] = vector
        self.foreign = np.array([language_of(t) != ENGLISH for t in texts])
        self.sparse = _matrix([words.of(text) for text in texts])
        self.did = _matrix([words.of_deeds(deeds) for deeds in did])
        self.given_up = _matrix([dict.fromkeys(retracted_words(text), 1.0) for text in texts])
        self.gives_up = np.asarray(self.given_up.sum(axis=1)).ravel() > 0

    def between(self, some: Sequence[int], others: Sequence[int]) -> np.ndarray[Any, Any]:
        """How alike each of some is to each of the others: 0 to 1, from `JOINED` they are about one thing."""
        import numpy as np

        cosines = np.maximum(self.dense[some] @ self.dense[others].T, 0)
        shared = np.asarray((self.sparse[some] @ self.sparse[others].T).todense())
        did = np.asarray((self.did[some] @ self.did[others].T).todense())
        # in another language than English the model sees likeness everywhere: there it needs something in common
        unlike = (self.foreign[some][:, None] | self.foreign[others][None, :]) & (shared <= 0) & (did < DID_PLAINLY)
        cosines = np.where(unlike, 0, cosines)
        said = cosines + shared
        with_did = np.where(said >= MIN_SAID, said + DID * did, 0)
        score = np.maximum.reduce([cosines / SAME_COSINE, shared / SAME_WORDS, said / SAME_BOTH, with_did / SAME_ALL])
        both = self.gives_up[some][:, None] & self.gives_up[others][None, :]
        same_given_up = np.asarray((self.given_up[some] @ self.given_up[others].T).todense()) > 0
        score = np.where(same_given_up, np.maximum(score, 1.2), np.where(both, np.minimum(score, DIFFERENT), score))
        return np.clip(score * JOINED, 0, 1)

    def components(self) -> list[list[int]]:
        """Texts that are joined by a chain of likeness, which are all that have to be compared more closely."""
        import numpy as np
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        count = self.dense.shape[0]
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
