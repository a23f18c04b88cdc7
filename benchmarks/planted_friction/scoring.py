"""What was found against what was planted."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.planted_friction.model import KINDS, Place, Plant

MISSED = "missed"
ORDINARY, MIXED = "ordinary talk", "several things"
RESAMPLES = 1000


@dataclass(frozen=True)
class Found:
    """A pattern that somebody found: its kind, where its evidence lies, and how it is called."""

    name: str
    kind: str
    places: frozenset[Place]
    title: str = ""


@dataclass(frozen=True)
class Judged:
    """A pattern with what most of its evidence is; `hit` is the planted friction of its kind, if it is that."""

    found: Found
    of: Plant | None
    where: str
    """Name of the plant or decoy, or what it is else."""
    hit: bool
    again: bool
    """Whether another pattern of this kind had hit the same plant before."""


@dataclass
class Scored:
    """A week: each pattern, and for each planted friction the kinds under which it was found."""

    judged: list[Judged]
    kinds_found: dict[str, set[str]]
    friction: list[Plant]

    def count(self, kind: str) -> Tally:
        own = [plant for plant in self.friction if plant.kind == kind]
        patterns = [each for each in self.judged if each.found.kind == kind]
        return Tally(
            planted=len(own),
            recalled=sum(kind in self.kinds_found[plant.name] for plant in own),
            found=len(patterns),
            right=sum(each.hit and not each.again for each in patterns),
            again=sum(each.again for each in patterns),
        )


@dataclass(frozen=True)
class Tally:
    """Counts of a kind. A second pattern of one plant is no right one, for it is shown twice."""

    planted: int = 0
    recalled: int = 0
    found: int = 0
    right: int = 0
    again: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.planted + other.planted,
            self.recalled + other.recalled,
            self.found + other.found,
            self.right + other.right,
            self.again + other.again,
        )

    @property
    def recall(self) -> float | None:
        return self.recalled / self.planted if self.planted else None

    @property
    def precision(self) -> float | None:
        return self.right / self.found if self.found else None

    @property
    def f1(self) -> float:
        both = (self.recall or 0) + (self.precision or 0)
        return 2 * (self.recall or 0) * (self.precision or 0) / both if both else 0.0


def score(patterns: Sequence[Found], plants: Collection[Plant]) -> Scored:
    """A pattern is a plant when most of the places of its evidence lie in it, in two of its sessions or more for
    friction; it hits when its kind is right too."""
    owner: dict[Place, Plant] = {place: plant for plant in plants for place in plant.places}
    judged: list[Judged] = []
    kinds_found: dict[str, set[str]] = {plant.name: set() for plant in plants if not plant.is_decoy}
    for pattern in patterns:
        plant, where = _lies_in(pattern, owner)
        kind = pattern.kind
        whole = plant is not None and not plant.is_decoy and _sessions(pattern, plant) >= 2
        again = False
        if plant and whole:
            again = kind == plant.kind and kind in kinds_found[plant.name]
            kinds_found[plant.name].add(kind)
        hit = whole and plant is not None and kind == plant.kind
        judged.append(Judged(pattern, plant, where, hit, again))
    return Scored(judged, kinds_found, [plant for plant in plants if not plant.is_decoy])


def _lies_in(pattern: Found, owner: Mapping[Place, Plant]) -> tuple[Plant | None, str]:
    lies = Counter(owner[place].name if place in owner else ORDINARY for place in pattern.places)
    if not lies:
        return None, "no evidence"
    name, most = lies.most_common(1)[0]
    if most * 2 <= len(pattern.places):
        return None, MIXED
    plant = next((owner[place] for place in pattern.places if place in owner and owner[place].name == name), None)
    return plant, name


def _sessions(pattern: Found, plant: Plant) -> int:
    return len({each.session_id for each in plant.occurrences if each.places & pattern.places})


def confusion(weeks: Iterable[Scored]) -> dict[tuple[str, str], int]:
    """How often friction of a kind was found under each kind, or not at all."""
    counts: Counter[tuple[str, str]] = Counter()
    for week in weeks:
        for plant in week.friction:
            kinds = week.kinds_found[plant.name]
            for kind in ({plant.kind} if plant.kind in kinds else kinds) or {MISSED}:
                counts[plant.kind, kind] += 1
    return dict(counts)


def wrongly_taken(weeks: Iterable[Scored]) -> dict[str, Counter[str]]:
    """By what it really is (sort of decoy, friction of another kind, ordinary talk), the kinds it was taken for."""
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for week in weeks:
        for each in week.judged:
            if not each.hit:
                really = each.where if each.of is None else each.of.sort
                if each.of and not each.of.is_decoy:
                    really = f"really {really}" if really != each.found.kind else f"one session of {really}"
                taken[really][each.found.kind] += 1
            elif each.again:
                taken["found before"][each.found.kind] += 1
    return dict(taken)


@dataclass
class Interval:
    """A share over all weeks, with the middle 95 % of what it is over weeks drawn anew."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "–"
        text = f"{self.value:.2f}"
        return text if self.low is None or self.high is None else f"{text} [{self.low:.2f}, {self.high:.2f}]"


def interval(tallies: Sequence[Tally], of: Callable[[Tally], float | None]) -> Interval:
    """Of the sum of the tallies; weeks are resampled, 1000 times."""
    value = of(sum(tallies, Tally()))
    if value is None or len(tallies) < 2:
        return Interval(value)
    chance = random.Random(0)
    drawn = (of(sum(chance.choices(tallies, k=len(tallies)), Tally())) for _ in range(RESAMPLES))
    shares = sorted(share for share in drawn if share is not None)
    return Interval(value, shares[int(0.025 * len(shares))], shares[min(int(0.975 * len(shares)), len(shares) - 1)])


@dataclass
class Table:
    """Tallies of all weeks by kind."""

    weeks: list[Scored] = field(default_factory=list)

    def rows(self) -> list[tuple[str, Tally, Interval, Interval]]:
        found = []
        for kind in KINDS:
            tallies = [week.count(kind) for week in self.weeks]
            recall, precision = interval(tallies, lambda t: t.recall), interval(tallies, lambda t: t.precision)
            found.append((kind, sum(tallies, Tally()), recall, precision))
        return found

    def overall(self) -> Tally:
        """All kinds together; patterns of no known kind count as found."""
        tallies = [week.count(kind) for week in self.weeks for kind in KINDS]
        other = sum(each.found.kind not in KINDS for week in self.weeks for each in week.judged)
        return sum(tallies, Tally(found=other))
