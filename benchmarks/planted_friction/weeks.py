"""A week of sessions, made of a seed and a bank."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from benchmarks.planted_friction.bank import LANGUAGES, Bank, Topic
from benchmarks.planted_friction.model import (
    CLAUDE_CODE,
    HARNESSES,
    KINDS,
    MISSING_SKILL,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    Occurrence,
    Plant,
    Said,
    Scene,
    Session,
    Step,
    Week,
    agent,
    user,
)
from benchmarks.planted_friction.scenes import OCCURRENCE, correction, failure, ordinary
from benchmarks.planted_friction.writers import told_in, write_session

MONDAY = date(2026, 3, 2)
DAYS = tuple(MONDAY + timedelta(days=number) for number in range(7))
WRITTEN = datetime(2026, 2, 16, 9, tzinfo=UTC)
"""When MEMORY.md and the files of the projects were last changed: before the week."""
SECTIONS = ("User", "Hard Rules", "System Architecture", "Patterns")
MOST_SPECIAL = 3
"""Scenes of a session that are more than ordinary talk."""
SPOKEN = (REPEATED_CORRECTION, RULE_VIOLATED, STALE_MEMORY, MISSING_SKILL)
"""Kinds in which the person has words of their own."""


@dataclass
class _Casting:
    """Sessions, of which each becomes what the first scene in it needs."""

    chance: random.Random
    sessions: list[Session]
    projects: Sequence[str]
    special: dict[int, list[Scene]] = field(default_factory=dict)

    def find(
        self,
        *,
        language: str,
        harnesses: Collection[str] = HARNESSES,
        project: str | None = None,
        days: Collection[date] = DAYS,
        but: Iterable[Session] = (),
    ) -> Session:
        """A session that can be all of this, not one of `but`; it is so from now on."""
        taken = {session.number for session in but}
        free = [
            s
            for s in self.sessions
            if s.number not in taken
            and len(self.special.get(s.number, ())) < MOST_SPECIAL
            and s.language in (None, language)
            and (s.harness is None or s.harness in harnesses)
            and (project is None or s.project in (None, project))
            and s.day in days
        ]
        if not free:
            day = self.chance.choice(sorted(days))
            free = [Session(len(self.sessions), day)]
            self.sessions += free
        session = self.chance.choice(free)
        session.language = language
        session.harness = session.harness or self.chance.choice(sorted(harnesses))
        session.project = session.project or project or self.chance.choice(self.projects)
        return session

    def play(self, session: Session, name: str, steps: Sequence[Step]) -> None:
        self.special.setdefault(session.number, []).append(Scene(name, steps))


@dataclass
class _Making:
    bank: Bank
    seed: int
    chance: random.Random
    casting: _Casting
    plants: list[Plant] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    memory: list[tuple[str, str]] = field(default_factory=list)
    """Lines of MEMORY.md with their section."""
    told: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Lines by project and file."""

    # topics

    def topic(self, kind: str) -> Topic | None:
        """One that this week has nothing of yet, as friction or as a decoy."""
        free = [topic for topic in self.bank.topics(kind) if topic["name"] not in self.used]
        if not free:
            return None
        topic = self.chance.choice(free)
        self.used.add(topic["name"])
        return topic

    def languages(self, count: int) -> list[str]:
        """Of the sessions of one plant: mostly one language, sometimes several."""
        weights = (0.5, 0.27, 0.23)
        if self.chance.random() < 0.3:
            return self.chance.choices(LANGUAGES, weights, k=count)
        return self.chance.choices(LANGUAGES, weights) * count

    def plant(self, name: str, kind: str, sort: str, why: str = "") -> Plant:
        made = Plant(f"{sort}/{name}", kind, sort, why)
        self.plants.append(made)
        return made

    # friction

    def friction(self, kind: str) -> None:
        topic = self.topic(kind)
        if topic is None:
            return
        plant = self.plant(topic["name"], kind, kind)
        least = 3 if kind == MISSING_SKILL else 2
        languages = self.languages(self.chance.randint(least, 4))
        refused = topic.get("refusals") if "error" not in topic or self.chance.random() < 0.5 else None
        phrases: dict[str, list[str]] = topic["says"] if kind in SPOKEN else refused or {}
        project, harnesses = self.place(kind, topic, languages[0])
        sessions: list[Session] = []
        left = {language: self.chance.sample(told, len(told)) for language, told in phrases.items()}
        for language in languages:
            if left and not left[language]:
                if kind != MISSING_SKILL:
                    continue  # nothing is left to say in other words
                left[language] = list(phrases[language])
            session = self.casting.find(language=language, harnesses=harnesses, project=project, but=sessions)
            sessions.append(session)
            phrase = self.bank.filled(left[language].pop(), self.chance) if left else ""
            steps = OCCURRENCE[kind](self.bank, topic, language, phrase, self.chance)
            self.casting.play(session, plant.name, steps)

    def place(self, kind: str, topic: Topic, language: str) -> tuple[str | None, Collection[str]]:
        """The project and harnesses that the sessions must have, and the line in the file that is read there."""
        harnesses = topic.get("harnesses", HARNESSES)
        if kind not in (RULE_VIOLATED, STALE_MEMORY):
            return None, harnesses
        line = topic["line"].get(language) or topic["line"]["en"]
        file = self.chance.choice(("MEMORY.md", "AGENTS.md", "CLAUDE.md" if kind == RULE_VIOLATED else "AGENTS.md"))
        if file == "MEMORY.md":
            self.memory.append((topic.get("section", "Hard Rules"), line))
            return None, harnesses
        project = self.chance.choice(self.casting.projects)
        self.told.setdefault((project, file), []).append(line)
        return project, (CLAUDE_CODE,) if file == "CLAUDE.md" else harnesses

    # decoys

    def decoy_same_topic(self) -> None:
        if topic := self.topic(REPEATED_CORRECTION):
            plant = self.plant(topic["name"], "", "same topic", "it is only talked about: nobody corrects anything")
            for language, texts in self._in_one_language(topic["about"]):
                self._alone(plant, language, texts)

    def decoy_one_session(self) -> None:
        kind = self.chance.choice(KINDS[:2])
        topic = self.topic(kind)
        if topic is None:
            return
        plant = self.plant(topic["name"], "", "one session", "one session repeats itself")
        language = self.chance.choice(LANGUAGES)
        session = self.casting.find(language=language)
        steps: list[Step] = []
        for phrase in topic["says"][language] if kind == REPEATED_CORRECTION else [""] * 3:
            scene = correction if phrase else failure
            steps += scene(self.bank, topic, language, phrase, self.chance)
        self.casting.play(session, plant.name, steps)

    def decoy_politeness(self) -> None:
        plant = self.plant("thanks", "", "politeness", "the person is friendly")
        self._over_sessions(plant, "politeness", self.chance.randint(3, 5))

    def decoy_approval(self) -> None:
        plant = self.plant("go ahead", "", "approval", "the person approves")
        self._over_sessions(plant, "approval", self.chance.randint(3, 5))

    def decoy_similar_errors(self) -> None:
        group = self.chance.choice(self.bank.decoys["similar_errors"])
        plant = self.plant(group["name"], "", "similar errors", "different errors with similar words")
        self._failures(plant, group["failures"])

    def decoy_tdd(self) -> None:
        plant = self.plant("red first", "", "tdd", "another test fails each time, and is meant to")
        failures = self.bank.decoys["tdd"]
        self._failures(plant, self.chance.sample(failures, self.chance.randint(3, 5)))

    def decoy_grep_nothing(self) -> None:
        plant = self.plant("nothing found", "", "grep", "a search that finds nothing did not fail")
        commands = self.chance.sample(self.bank.decoys["grep"], self.chance.randint(3, 4))
        self._failures(plant, [[command, ""] for command in commands])

    def decoy_different_refusals(self) -> None:
        plant = self.plant("no, thanks", "", "different refusals", "each call is refused once, for a reason of its own")
        sessions: list[Session] = []
        for told in self.chance.sample(self.bank.decoys["refused"], 3):
            language = told["language"]
            session = self.casting.find(language=language, but=sessions)
            sessions.append(session)
            call = {name: value for name, value in told.items() if name not in ("language", "words")}
            refused = self.bank.call(call, self.chance, refused=True, words=told["words"])
            self.casting.play(session, plant.name, [refused, agent(self.bank.one("corrected", language, self.chance))])

    def decoy_rule_obeyed(self) -> None:
        topic = self.topic(RULE_VIOLATED)
        if topic is None:
            return
        plant = self.plant(topic["name"], "", "rule obeyed", "the rule is kept, and the agent says so")
        pairs = self._in_one_language(topic["obeyed"])
        language = pairs[0][0]
        project, harnesses = self.place(RULE_VIOLATED, topic, language)
        sessions: list[Session] = []
        for _, text in pairs:
            session = self.casting.find(language=language, harnesses=harnesses, project=project, but=sessions)
            sessions.append(session)
            self.casting.play(session, plant.name, self._obeying(language, text))

    def _obeying(self, language: str, text: str) -> list[Step]:
        return [agent(text), user(self.bank.one("pleased", language, self.chance))]

    def decoy_quoted(self) -> None:
        """What others said of a topic, in a file that is read, or pasted."""
        topic = self.topic(REPEATED_CORRECTION)
        if topic is None:
            return
        plant = self.plant(topic["name"], "", "quoted", "others said it, in a document")
        language = self.chance.choice(LANGUAGES)
        sessions: list[Session] = []
        for phrase in topic["says"][language][:3]:
            session = self.casting.find(language=language, but=sessions)
            sessions.append(session)
            intro = self.bank.one("pasting", language, self.chance)
            name = self.chance.choice(("Ana", "Jonas", "Priya"))
            if self.chance.random() < 0.5:
                path = f"docs/review-{self.chance.randint(10, 99)}.md"
                text = f"# Review\n\n{name}, {self.chance.randint(1, 28)} Feb:\n> {phrase}\n\nMerged."
                steps: list[Step] = [self.bank.call({"tool": "read", "path": path, "output": text}, self.chance)]
            else:
                steps = [user(f"{intro}\n\n```\n{name}: {phrase}\n```")]
            steps.append(agent(self.bank.one("replies", language, self.chance)))
            self.casting.play(session, plant.name, steps)

    def decoy_changed_mind(self) -> None:
        told = self.chance.choice(self.bank.decoys["changed_mind"])
        plant = self.plant(told["name"], "", "changed mind", "said on Monday, decided otherwise on Wednesday")
        language = self.chance.choice([each for each in LANGUAGES if each in told["first"]])
        sessions: list[Session] = []
        for day, text in ((DAYS[0], told["first"][language]), (DAYS[2], told["then"][language])):
            session = self.casting.find(language=language, days=(day,), but=sessions)
            sessions.append(session)
            steps = [user(text), agent(self.bank.one("corrected", language, self.chance))]
            self.casting.play(session, plant.name, steps)

    def decoy_habit(self) -> None:
        """The same file is read before tasks that have nothing to do with each other."""
        told = self.chance.choice(self.bank.decoys["habit"])
        plant = self.plant(told["path"], "", "habit", "the same file is read before different tasks")
        sessions: list[Session] = []
        for _ in range(self.chance.randint(3, 5)):
            language = self.chance.choice(LANGUAGES)
            session = self.casting.find(language=language, but=sessions)
            sessions.append(session)
            steps: list[Step] = [user(self.bank.one("requests", language, self.chance))]
            steps += [self.bank.call({"tool": "read"} | told, self.chance)]
            self.casting.play(session, plant.name, [*steps, agent(self.bank.one("replies", language, self.chance))])

    def decoy_once_each(self) -> None:
        """Things that happen in one session each, as in any week: they have nothing to do with each other."""
        plant = self.plant("once each", "", "once each", "each in one session only, and no two of them alike")
        kinds = [kind for kind in KINDS if kind not in (STALE_MEMORY, RULE_VIOLATED)]
        sessions: list[Session] = []
        for kind in self.chance.choices(kinds, (4, 2, 2, 1, 2), k=self.chance.randint(4, 7)):
            topic = self.topic(kind)
            if topic is None:
                continue
            language = self.chance.choice(LANGUAGES)
            session = self.casting.find(language=language, harnesses=topic.get("harnesses", HARNESSES), but=sessions)
            sessions.append(session)
            words = topic.get("says") or ({} if "error" in topic else topic["refusals"])
            phrase = self.chance.choice(words[language]) if words else ""
            steps = OCCURRENCE[kind](self.bank, topic, language, phrase, self.chance)
            self.casting.play(session, plant.name, steps)

    def _failures(self, plant: Plant, failures: Iterable[Sequence[str]]) -> None:
        sessions: list[Session] = []
        for command, error in failures:
            language = self.chance.choice(LANGUAGES)
            session = self.casting.find(language=language, but=sessions)
            sessions.append(session)
            failed = self.bank.shell(command, error, self.chance, 1)
            said = agent(self.bank.one("replies", language, self.chance))
            self.casting.play(session, plant.name, [failed, said])

    def _over_sessions(self, plant: Plant, phrases: str, count: int) -> None:
        sessions: list[Session] = []
        for _ in range(count):
            language = self.chance.choice(LANGUAGES)
            session = self.casting.find(language=language, but=sessions)
            sessions.append(session)
            text = self.chance.choice(self.bank.decoys[phrases][language])
            self.casting.play(session, plant.name, [user(text), agent(self.bank.one("replies", language, self.chance))])

    def _in_one_language(self, phrases: dict[str, list[str]]) -> list[tuple[str, str]]:
        language = self.chance.choice([language for language in LANGUAGES if phrases.get(language)])
        return [(language, text) for text in self.chance.sample(phrases[language], len(phrases[language]))]

    def _alone(self, plant: Plant, language: str, text: str) -> None:
        session = self.casting.find(language=language, but=[s for s in self.casting.sessions if self._has(s, plant)])
        said = agent(self.bank.one("replies", language, self.chance))
        self.casting.play(session, plant.name, [user(text), said])

    def _has(self, session: Session, plant: Plant) -> bool:
        return any(scene.of == plant.name for scene in self.casting.special.get(session.number, ()))

    def decoys(self) -> None:
        for name in sorted(name for name in dir(self) if name.startswith("decoy_")):
            if self.chance.random() < 0.7:
                getattr(self, name)()


def make_week(seed: int, bank: Bank, folder: Path) -> Week:
    """Write the week into the folder: `sessions/`, `projects/` (their folders are the sessions' cwd) and `workspace/`
    with its MEMORY.md. The same seed and bank give the same files, but for the folder's name in them."""
    chance = random.Random(f"{bank.name}/{seed}")
    count = chance.randint(20, 32)
    sessions = [Session(number, DAYS[number * 7 // count]) for number in range(count)]
    projects = chance.sample(bank.talk["projects"], chance.randint(2, 4))
    making = _Making(bank, seed, chance, _Casting(chance, sessions, projects))
    for kind in KINDS:
        for _ in range(chance.choices((0, 1, 2), (0.1, 0.65, 0.25))[0]):
            making.friction(kind)
    making.decoys()
    for session in sessions:
        _fill(making, session)
    return _write(making, folder)


def _fill(making: _Making, session: Session) -> None:
    """Settle what is open, and put ordinary talk around the scenes."""
    chance, bank = making.chance, making.bank
    session.language = session.language or chance.choices(LANGUAGES, (0.5, 0.27, 0.23))[0]
    session.harness = session.harness or chance.choice(HARNESSES)
    session.project = session.project or chance.choice(making.casting.projects)
    start = time(chance.randint(7, 20), chance.randint(0, 59), chance.randint(0, 59))
    session.started_at = datetime.combine(session.day, start, UTC)
    special = list(making.casting.special.get(session.number, ()))
    chance.shuffle(special)
    scenes = [Scene("", ordinary(bank, session.language, chance))]
    for scene in special:
        if chance.random() < 0.5:
            scenes.append(Scene("", ordinary(bank, session.language, chance)))
        scenes.append(scene)
    wanted = chance.randint(2, 4) if chance.random() < 0.15 else chance.randint(6, 9)
    while sum(isinstance(step, Said) and step.speaker == "user" for s in scenes for step in s.steps) < wanted:
        scenes.insert(chance.randint(1, len(scenes)), Scene("", ordinary(bank, session.language, chance)))
    session.scenes = scenes


def _write(making: _Making, folder: Path) -> Week:
    chance, bank = making.chance, making.bank
    plants = {plant.name: plant for plant in making.plants}
    workspace, sessions_dir = folder / "workspace", folder / "sessions"
    instructions = {project: _project(folder, project, making) for project in making.casting.projects}
    _memory(workspace, bank, making)
    files = []
    for session in sorted(making.casting.sessions, key=lambda s: (s.started_at, s.number)):
        assert session.project
        cwd = folder / "projects" / session.project
        path, of_scenes, end = write_session(sessions_dir, session, cwd, instructions[session.project], chance)
        os.utime(path, 2 * (end.timestamp(),))
        files.append(path)
        for scene, lines in zip(session.scenes, of_scenes, strict=True):
            if scene.of:
                places = frozenset((f"{path}", line) for line in lines)
                told = told_in(scene.steps)
                plants[scene.of].occurrences.append(Occurrence(session.session_id, session.day, places, told))
    return Week(making.seed, DAYS, sessions_dir, workspace, tuple(files), tuple(making.plants))


def _project(folder: Path, project: str, making: _Making) -> str:
    """The folder of a project with its AGENTS.md and CLAUDE.md; returns what AGENTS.md says."""
    cwd = folder / "projects" / project
    cwd.mkdir(parents=True)
    (cwd / ".git").mkdir()
    said = ""
    for file in ("AGENTS.md", "CLAUDE.md"):
        lines = making.told.get((project, file), [])
        if lines or making.chance.random() < 0.5:
            own = making.chance.sample(making.bank.talk["notes"], 2)
            text = f"# {project}\n\n" + "".join(f"- {line}\n" for line in _mixed(lines, own, making.chance))
            _dated(cwd / file, text)
            said = text if file == "AGENTS.md" else said
    return said


def _memory(workspace: Path, bank: Bank, making: _Making) -> None:
    sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
    own = making.chance.sample(bank.talk["memory"], 4)
    for section, line in [*making.memory, *((making.chance.choice(SECTIONS), line) for line in own)]:
        dated = f"({WRITTEN:%Y-%m-%d}) " if making.chance.random() < 0.5 else ""
        sections[section].append(f"- {dated}{line}\n")
    text = "# Memory\n" + "".join(f"\n## {name}\n" + "".join(lines) for name, lines in sections.items() if lines)
    workspace.mkdir(parents=True)
    _dated(workspace / "MEMORY.md", text)


def _mixed(lines: Sequence[str], own: Sequence[str], chance: random.Random) -> list[Any]:
    return chance.sample([*lines, *own], len(lines) + len(own))


def _dated(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    os.utime(path, 2 * (WRITTEN.timestamp(),))
