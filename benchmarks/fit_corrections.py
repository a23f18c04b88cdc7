"""Fit what tells the same correction, said again, and print how well that does on banks that were left out.

    python -m benchmarks.fit_corrections [--weeks N] [--first N] [--write FILE]

Three judgements (`memory_pipeline/friction/weights.py`): whether two sentences are about one thing, whether what is
about one thing is the same correction again, and whether it is about a line of MEMORY.md. Fitted on weeks of planted
friction of four banks, each as it is planted, with some other remarks moved to where the agent had done what is
objected to (for people say other things too after a deed), and with no deed at all; and on the recorded sessions of
../shared/fixtures and ../shared/more-sessions, in which nothing counts as a correction that was given twice: nobody has
looked through all of them, and what was shown of them was none.

Printed is, for each bank, what weights find that were fitted on the others: recall and precision by the judgements
alone, in one look at the whole week. What counts as an objection is told by weights of `fit_objections.py` that are
fitted here without the banks, for the shipped ones know two of them.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.optimize import minimize

from benchmarks.common import FIXTURES, MORE, parser
from benchmarks.fit_objections import Fitting, examples, use
from benchmarks.planted_friction.bank import KEPT_ASIDE, REPORTING, TUNING, UNHEARD, Bank, bank_of
from benchmarks.planted_friction.model import (
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    TOOL_MISUSE,
    Plant,
)
from benchmarks.planted_friction.running import NOW, phrases, prepare, settings_of
from benchmarks.planted_friction.weeks import make_week
from memory_pipeline.days import lookback
from memory_pipeline.friction import weights
from memory_pipeline.friction.clustering import Compared, rarity
from memory_pipeline.friction.corrections import ABOUT, SURE, SURE_OF_RULE, by_rule_and_others, one_thing_each
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.said import Said
from memory_pipeline.friction.sentence_weights import OBJECTIONS
from memory_pipeline.friction.stage import FrictionStage, Heard
from memory_pipeline.workspace.workspace import Workspace

BANKS = (TUNING, UNHEARD, REPORTING, KEPT_ASIDE)
PER_WEEK = {REPEATED_CORRECTION: 3, RULE_VIOLATED: 2}
KINDS = (REPEATED_CORRECTION, RULE_VIOLATED)
PLANTED, MOVED, WITHOUT = "as planted", "other remarks after the same deeds", "without deeds"
WAYS = (PLANTED, MOVED, WITHOUT)
MOVED_SHARE = 0.5
RECORDED_TIMES = 10
"""How often recorded sessions count: they are few beside the planted weeks, and are as people type."""
MIN_SAID = 50
"""Sentences in a window of recorded sessions, from which it counts."""
AGAINST = ("other_language", "changes", "one_frame")
"""What can only speak against a judgement; all else can only speak for it."""


@dataclass
class Window:
    """What was said in some days, and of which plant each is ("" of none)."""

    name: str
    heard: Heard
    of: Mapping[str, str]
    plants: Mapping[str, Plant]
    lines: Mapping[str, frozenset[str]]
    """The lines of a plant that is a broken rule."""

    def kind(self, name: str) -> str:
        plant = self.plants.get(name)
        return plant.kind if plant else ""

    def planted(self, event: FrictionEvent) -> str:
        """The plant of a correction or a broken rule, "" of any other thing."""
        name = self.of.get(event.event_id, "")
        return name if self.kind(name) in KINDS else ""


def planted_windows(bank: Bank, weeks: Iterable[int], per_week: Mapping[str, int] = PER_WEEK) -> Iterator[Window]:
    """The last day of each week looks back on all of it."""
    told = Bank(bank.name, {**bank.data, "per_week": per_week})
    lines = {topic["name"]: frozenset(topic["line"].values()) for topic in bank.topics(RULE_VIOLATED)}
    for seed in weeks:
        with tempfile.TemporaryDirectory() as folder:
            week = make_week(seed, told, Path(folder))
            workspace = Workspace.open(settings_of(week.workspace, week.sessions_dir))
            prepare(workspace, NOW, None)
            heard = FrictionStage(workspace, phrases()).heard(week.days[-1], list(week.days))
            rows = workspace.lake.read("messages", week.days).select("message_id", "source_file", "source_line")
            places = {message_id: (file, line) for message_id, file, line in rows.iter_rows()}
        owner = {place: plant.name for plant in week.plants for place in plant.places}
        of = {e.event_id: owner.get(places[e.evidence[0][0]], "") for e in _everything(heard.said)}
        plants = {plant.name: plant for plant in week.plants}
        yield Window(
            f"{bank.name} {seed}",
            heard,
            of,
            plants,
            {n: lines[n.partition("/")[2]] for n, p in plants.items() if p.kind == RULE_VIOLATED},
        )


def recorded_windows(sessions: Path) -> Iterator[Window]:
    """Each day of recorded sessions that enough was said in or before."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open(settings_of(Path(folder) / "workspace", sessions))
        days = prepare(workspace, datetime.now(UTC), None)
        stage = FrictionStage(workspace, phrases())
        for day in days:
            heard = stage.heard(day, lookback(day, workspace.settings.lookback_days))
            if len(_everything(heard.said)) >= MIN_SAID:
                yield Window(f"{sessions.name} {day}", heard, {}, {}, {})


def _everything(said: Said) -> list[FrictionEvent]:
    return [*said.corrections, *said.changes, *said.remarks]


def varied(window: Window, way: str) -> Window:
    """The same with other deeds before what was said."""
    if way == PLANTED:
        return window
    chance = random.Random(window.name)
    deeds = [e.did for e in _everything(window.heard.said) if window.planted(e) and e.did]

    def changed(event: FrictionEvent) -> FrictionEvent:
        if way == WITHOUT:
            return replace(event, did=frozenset())
        moves = deeds and not window.of.get(event.event_id) and chance.random() < MOVED_SHARE
        return replace(event, did=chance.choice(deeds)) if moves else event

    said = Said(*([changed(e) for e in part] for part in window.heard.said))
    words = replace(window.heard.words, deeds=rarity([e.did for e in _everything(said)]))
    return replace(window, heard=replace(window.heard, said=said, words=words))


class Looked:
    """A window with what the product makes of it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.judge, self.about = window.heard.weighed()

    def add_pairs(self, rows: _Rows, times: int) -> None:
        """Each two of two sessions, and whether they are of one plant."""
        events = self.judge.possible()
        if len(events) < 2:
            return
        heard, everyone = self.window.heard, range(len(events))
        compared = Compared(
            [e.text for e in events],
            [heard.vectors.get(e.event_id) for e in events],
            heard.words,
            [e.did for e in events],
        )
        upper = np.triu_indices(len(events), 1)
        sessions = np.array([e.session_id for e in events])
        of = np.array([self.window.of.get(e.event_id, "") for e in events])
        planted = np.array([bool(self.window.planted(e)) for e in events])
        same = (of[:, None] == of[None, :]) & (of != "")[:, None]
        # two of one decoy are about one thing too, but nothing that should be found
        counts = ((sessions[:, None] != sessions[None, :]) & ~(same & ~planted[:, None]))[upper]
        found = compared.features(everyone, everyone)
        rows.add({name: matrix[upper][counts] for name, matrix in found.items()}, same[upper][counts], times)

    def groups(self) -> list[tuple[list[FrictionEvent], str]]:
        """What is about one thing, in two sessions or more, and the plant that most of it is of."""
        found = []
        for members in one_thing_each(self.judge, self.window.heard.vectors):
            of, times = Counter(self.window.of.get(m.event_id, "") for m in members).most_common(1)[0]
            of = of if 2 * times > len(members) else ""
            if len({m.session_id for m in members}) > 1 and self.window.kind(of) != TOOL_MISUSE:
                found.append((members, of))
        return found

    def of_rules(self) -> Iterator[tuple[Rule, list[FrictionEvent], str]]:
        """What is about a line, in two sessions or more, and the plant that most of it is of."""
        groups = one_thing_each(self.judge, self.window.heard.vectors)
        for rule, members in by_rule_and_others(self.judge, self.about, groups)[0].items():
            if len({m.session_id for m in members}) > 1:
                of, times = Counter(self.window.of.get(m.event_id, "") for m in members).most_common(1)[0]
                yield rule, members, of if 2 * times > len(members) else ""


@dataclass
class _Rows:
    """What one judgement is fitted on."""

    names: list[str] = field(default_factory=list)
    features: list[np.ndarray] = field(default_factory=list)
    labels: list[np.ndarray] = field(default_factory=list)

    def add(self, features: Mapping[str, Any], label: Any, times: int = 1) -> None:
        """Numbers, or as many of each as there are labels."""
        self.names = list(features)
        self.features += [np.stack([np.atleast_1d(x) for x in features.values()], axis=1)] * times
        self.labels += [np.atleast_1d(label)] * times


class Fit:
    """Logistic regressions, one after the other: what is grouped depends on the first."""

    def __init__(self, windows: Sequence[tuple[Window, int]]) -> None:
        """Each window with how often it counts."""
        looked = [(Looked(window), times) for window, times in windows]
        self.found: dict[str, dict[str, Any]] = {}
        pairs = _Rows()
        for one, times in looked:
            one.add_pairs(pairs, times)
        self._fit(weights.SAME_THING, pairs, 10.0)
        self.use()
        again, about = _Rows(), _Rows()
        for one, times in looked:
            for members, of in one.groups():
                own = one.window.kind(of) in KINDS
                again.add(one.judge.features(members), own, times)
                rules = one.window.heard.rules
                if own and any(rule.reaches(m) for rule in rules for m in members):
                    lines = one.window.lines.get(of, frozenset())
                    about.add(one.about.features(members), [rule.text in lines for rule in rules])
        self._fit(weights.CORRECTION, again, 0.3)
        self._fit(weights.ABOUT_RULE, about, 3.0)
        self.use()

    def _fit(self, name: str, told: _Rows, strength: float) -> None:
        """With a ridge, and no weight of the wrong sign: what is liker must never count as less like."""
        names, rows, label = told.names, np.vstack(told.features), np.concatenate(told.labels).astype(float)
        mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
        given = np.hstack([np.ones((len(rows), 1)), (rows - mean) / scale])
        sign = 2 * label - 1

        def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
            margin = sign * (given @ w)
            ridge = np.concatenate([[0.0], w[1:]]) / strength
            return (
                float(np.logaddexp(0, -margin).sum() + ridge @ w / 2),
                -given.T @ (sign / (1 + np.exp(np.clip(margin, -500, 500)))) + ridge,
            )

        bounds = [(None, None), *((None, 0.0) if n in AGAINST else (0.0, None) for n in names)]
        found = minimize(loss, np.zeros(len(names) + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
        by_name = found[1:] / scale
        self.found[name] = {
            "intercept": round(float(found[0] - by_name @ mean), 3),
            "by_name": {n: round(float(w), 3) for n, w in zip(names, by_name, strict=True)},
        }

    def use(self) -> None:
        """From now on in this process, in place of those that are shipped."""
        found = {**weights.shipped(), **{name: weights.Weights(**told) for name, told in self.found.items()}}
        patch.object(weights, "shipped", lambda: found).start()


def figures(windows: Iterable[Window]) -> str:
    """Recall and precision of corrections and broken rules, as the judgements alone have them."""
    planted, found, right = Counter[str](), Counter[str](), Counter[str]()
    for window in windows:
        looked, got = Looked(window), set()
        planted.update(plant.kind for plant in window.plants.values())
        for members, of in looked.groups():
            _, likely = looked.about.likeliest(members)
            if likely < ABOUT and looked.judge.recurs(members) >= SURE:
                found[REPEATED_CORRECTION] += 1
                got |= {of} if window.kind(of) == REPEATED_CORRECTION else set()
        for rule, members, of in looked.of_rules():
            if looked.judge.recurs(members) >= SURE_OF_RULE:
                found[RULE_VIOLATED] += 1
                got |= {of} if window.kind(of) == RULE_VIOLATED and rule.text in window.lines[of] else set()
        right.update(window.kind(of) for of in got)
    shares = ((k, right[k] / max(1, planted[k]), right[k] / max(1, found[k])) for k in KINDS)
    return "   ".join(f"{kind} {recall:.2f} {precision:.2f}" for kind, recall, precision in shares)


def main() -> None:
    options = parser("fit_corrections", __doc__)
    options.add_argument("--weeks", type=int, default=24, help="of each bank")
    options.add_argument("--first", type=int, default=100, help="the first seed")
    options.add_argument("--write", type=Path, metavar="FILE", help="where the weights go")
    chosen = options.parse_args()
    use(OBJECTIONS, Fitting(list(examples())).without(*BANKS))
    seeds = range(chosen.first, chosen.first + chosen.weeks)
    planted = {name: list(planted_windows(bank_of(name), seeds)) for name in BANKS}
    recorded = [w for place in (FIXTURES, MORE) if place.is_dir() for w in recorded_windows(place)]
    print(f"{chosen.weeks} weeks of each bank, {len(recorded)} days of recorded sessions", flush=True)
    real = [(window, RECORDED_TIMES) for window in recorded]

    def windows_of(names: Iterable[str]) -> list[tuple[Window, int]]:
        return [(varied(window, way), 1) for name in names for window in planted[name] for way in WAYS]

    for name in BANKS:
        Fit([*windows_of(other for other in BANKS if other != name), *real])
        for way in WAYS:
            print(f"{name:<12}{way:<38}{figures(varied(window, way) for window in planted[name])}", flush=True)
    fit = Fit([*windows_of(BANKS), *real])
    shown = {m.text for window in recorded for m in _shown(window)}
    print(f"in recorded sessions, by weights fitted on them: {len(shown)} sentences are shown")
    if chosen.write:
        write(chosen.write, fit.found)


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Into a file of weights, in which those of other judgements stay."""
    told = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**told, **found}, indent=1) + "\n", "utf-8")


def _shown(window: Window) -> list[FrictionEvent]:
    looked = Looked(window)
    return [m for members, _ in looked.groups() if looked.judge.recurs(members) >= SURE for m in members]


if __name__ == "__main__":
    main()
