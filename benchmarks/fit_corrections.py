"""Fit what tells the same correction, said again, and print how well that does on banks that were left out.

    python -m benchmarks.fit_corrections [--weeks N] [--first N] [--write FILE]

Three judgements (`memory_pipeline/friction/weights.py`): whether two sentences are about one thing, whether what is
about one thing is the same correction again, and whether it is about a line of MEMORY.md. Fitted on weeks of planted
friction of four banks, each as it is planted, with some other remarks moved to where the agent had done what is
objected to (for people say other things too after a deed), and with no deed at all; and on the recorded sessions of
../shared/fixtures and ../shared/more-sessions, in which nothing counts as a correction that was given twice: a reader
found none. Printed is, for each bank, what weights find that were fitted on the others: the share of planted
corrections and broken rules, and how many of those found are planted. What counts as an objection is by the weights of
`fit_objections.py`, which know the banks `tuning` and `unheard`; give it their weights without these for the figures of
both.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.optimize import minimize

from benchmarks.common import FIXTURES, MORE, parser
from benchmarks.fit_objections import Fitting, examples
from benchmarks.planted_friction.bank import KEPT_ASIDE, REPORTING, TUNING, UNHEARD, Bank, bank_of
from benchmarks.planted_friction.model import REPEATED_CORRECTION, RULE_VIOLATED, TOOL_MISUSE, Plant
from benchmarks.planted_friction.running import NOW, Remembering, prepare, settings_of
from benchmarks.planted_friction.weeks import make_week
from memory_pipeline.days import lookback
from memory_pipeline.friction import objections, weights
from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.clustering import Compared, rarity
from memory_pipeline.friction.corrections import ABOUT, SURE, one_thing_each
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.judging import Judge
from memory_pipeline.friction.said import Said
from memory_pipeline.friction.stage import FrictionStage, Heard
from memory_pipeline.settings import BUNDLED_MODEL
from memory_pipeline.workspace import Workspace

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


def planted_windows(bank: Bank, weeks: Iterable[int], encoder: Remembering) -> Iterator[Window]:
    """The last day of each week looks back on all of it."""
    told = Bank(bank.name, {**bank.data, "per_week": PER_WEEK})
    lines = {topic["name"]: frozenset(topic["line"].values()) for topic in bank.topics(RULE_VIOLATED)}
    for seed in weeks:
        with tempfile.TemporaryDirectory() as folder:
            week = make_week(seed, told, Path(folder))
            workspace = Workspace.open(settings_of(week.workspace, week.sessions_dir))
            prepare(workspace, encoder, NOW)
            heard = FrictionStage.from_workspace(workspace).heard(week.days[-1], list(week.days))
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


def recorded_windows(sessions: Path, encoder: Remembering) -> Iterator[Window]:
    """Each day of recorded sessions that enough was said in or before."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open(settings_of(Path(folder) / "workspace", sessions))
        days = prepare(workspace, encoder, datetime.now(UTC))
        stage = FrictionStage.from_workspace(workspace)
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
        heard = window.heard
        self.window = window
        self.judge = Judge(heard.said, heard.vectors, heard.words)
        self.about = AboutRules(heard.rules, heard.rule_vectors, self.judge.events, heard.vectors, heard.words)

    def pairs(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Features of each two of two sessions, a row of each, and whether they are of one plant."""
        events = self.judge.possible()
        if len(events) < 2:
            return np.zeros((0, 0)), np.zeros(0, dtype=bool), []
        heard, everyone = self.window.heard, range(len(events))
        compared = Compared(
            [e.text for e in events],
            [heard.vectors.get(e.event_id) for e in events],
            heard.words,
            [e.did for e in events],
        )
        found = compared.features(everyone, everyone)
        upper = np.triu_indices(len(events), 1)
        sessions = np.array([e.session_id for e in events])
        of = np.array([self.window.of.get(e.event_id, "") for e in events])
        planted = np.array([bool(self.window.planted(e)) for e in events])
        same = (of[:, None] == of[None, :]) & (of != "")[:, None]
        # two of one decoy are about one thing too, but nothing that should be found
        counts = ((sessions[:, None] != sessions[None, :]) & ~(same & ~planted[:, None]))[upper]
        return np.stack([m[upper][counts] for m in found.values()], axis=1), same[upper][counts], list(found)

    def groups(self) -> list[tuple[list[FrictionEvent], str]]:
        """What is about one thing, in two sessions or more, and the plant that most of it is of."""
        found = []
        for members in one_thing_each(self.judge, self.window.heard.vectors):
            of, times = Counter(self.window.of.get(m.event_id, "") for m in members).most_common(1)[0]
            of = of if 2 * times > len(members) else ""
            if len({m.session_id for m in members}) > 1 and self.window.kind(of) != TOOL_MISUSE:
                found.append((members, of))
        return found


class Fit:
    """Logistic regressions, one after the other: what is grouped depends on the first."""

    def __init__(self, windows: Sequence[tuple[Window, int]]) -> None:
        """Each window with how often it counts."""
        looked = [(Looked(window), times) for window, times in windows]
        self.found: dict[str, dict[str, Any]] = {}
        pairs = [each for one, times in looked for each in [one.pairs()] * times if len(each[1])]
        self._fit(weights.SAME_THING, pairs[0][2], [p[0] for p in pairs], [p[1] for p in pairs], 10.0)
        self.use()
        of_groups, is_again, of_rules, is_about = [], [], [], []
        for one, times in looked:
            for members, of in one.groups():
                own = one.window.kind(of) in KINDS
                features = one.judge.features(members)
                of_groups += [list(features.values())] * times
                is_again += [own] * times
                names = list(features)
                rules = one.window.heard.rules
                if own and rules and any(rule.reaches(m) for rule in rules for m in members):
                    about = one.about.features(members)
                    of_rules.append(np.stack(list(about.values()), axis=1))
                    lines = one.window.lines.get(of, frozenset())
                    is_about.append(np.array([rule.text in lines for rule in rules]))
                    about_names = list(about)
        self._fit(weights.CORRECTION, names, [np.array(of_groups)], [np.array(is_again)], 0.3)
        self._fit(weights.ABOUT_RULE, about_names, of_rules, is_about, 3.0)
        self.use()

    def _fit(self, name: str, names: list[str], x: list[np.ndarray], y: list[np.ndarray], strength: float) -> None:
        """With a ridge, and no weight of the wrong sign: what is liker must never count as less like."""
        rows, label = np.vstack(x), np.concatenate(y).astype(float)
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
        found = {name: weights.Weights(**told) for name, told in self.found.items()}
        patch.object(weights, "shipped", lambda: found).start()


def figures(windows: Iterable[Window]) -> str:
    """Share of planted corrections and broken rules that are found, and of what is found that is planted."""
    planted = found = right = as_rule = rules = rules_wrong = 0
    for window in windows:
        looked, got = Looked(window), set()
        planted += sum(plant.kind in KINDS for plant in window.plants.values())
        for members, of in looked.groups():
            rule, likely = looked.about.likeliest(members)
            is_rule = rule is not None and likely >= ABOUT
            if looked.judge.recurs(members) < SURE:
                continue
            found += 1
            own = window.kind(of) in KINDS
            got |= {of} if own else set()
            if own and window.kind(of) == RULE_VIOLATED:
                rules += 1
                as_rule += is_rule and rule is not None and rule.text in window.lines[of]
            elif is_rule and own:
                rules_wrong += 1
        right += len(got)
    return (
        f"recall {right / max(1, planted):.2f} precision {right / max(1, found):.2f}   "
        f"of broken rules found {as_rule} of {rules} with their line, {rules_wrong} corrections with one"
    )


def main() -> None:
    options = parser("fit_corrections", __doc__)
    options.add_argument("--weeks", type=int, default=24, help="of each bank")
    options.add_argument("--first", type=int, default=100, help="the first seed")
    options.add_argument("--write", type=Path, metavar="FILE", help="where the weights go")
    chosen = options.parse_args()
    apart = Fitting([e for e in examples() if e.source not in BANKS])
    without_banks = objections.Objections(**apart.fit(range(len(apart.given))))  # type: ignore[arg-type]
    patch.object(objections, "load", lambda: without_banks).start()
    encoder = Remembering(BUNDLED_MODEL)
    seeds = range(chosen.first, chosen.first + chosen.weeks)
    planted = {name: list(planted_windows(bank_of(name), seeds, encoder)) for name in BANKS}
    recorded = [w for place in (FIXTURES, MORE) if place.is_dir() for w in recorded_windows(place, encoder)]
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
        chosen.write.write_text(json.dumps(fit.found, indent=1) + "\n", "utf-8")


def _shown(window: Window) -> list[FrictionEvent]:
    looked = Looked(window)
    return [m for members, _ in looked.groups() if looked.judge.recurs(members) >= SURE for m in members]


if __name__ == "__main__":
    main()
