"""What happens in a session: friction of every kind, and what only looks like it."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.planted_friction.bank import Bank, Topic
from benchmarks.planted_friction.model import (
    CONFIGURATION_DRIFT,
    MISSING_SKILL,
    RECURRING_FAILURE,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    TOOL_MISUSE,
    Step,
    agent,
    user,
)

SceneOf = Callable[[Bank, Topic, str, str, random.Random], list[Step]]
"""(bank, topic, language, phrase, chance): one occurrence; the phrase is the person's, "" where they say nothing."""


def correction(bank: Bank, topic: Topic, language: str, phrase: str, chance: random.Random) -> list[Step]:
    """The agent does it its way, and the person says how it is to be done."""
    return [
        *([bank.call(topic["does"], chance)] if "does" in topic else []),
        agent(bank.one("done", language, chance)),
        user(phrase),
        agent(bank.one("corrected", language, chance)),
    ]


def failure(bank: Bank, topic: Topic, language: str, phrase: str, chance: random.Random) -> list[Step]:
    """A command fails; sometimes it is tried again in vain, sometimes mended, sometimes left."""
    command = chance.choice(topic["commands"])
    failed = bank.shell(command, topic["error"], chance, topic.get("exit", 1))
    steps: list[Step] = [failed, agent(bank.one("failed", language, chance))]
    if chance.random() < 0.25:
        steps += [bank.shell(command, topic["error"], chance, topic.get("exit", 1))]
    if "fix" in topic and chance.random() < 0.6:
        steps += [bank.shell(topic["fix"], "", chance), bank.shell(command, topic.get("passes", "ok"), chance)]
        steps += [agent(bank.one("mended", language, chance))]
    return steps


def misuse(bank: Bank, topic: Topic, language: str, phrase: str, chance: random.Random) -> list[Step]:
    """A call is refused or fails, and another tool does it."""
    if phrase:
        tried = bank.call(topic["tries"], chance, refused=True, words=phrase)
    else:
        tried = bank.call(topic["tries"] | {"output": topic["error"], "exit": topic.get("exit", 1)}, chance)
    return [tried, agent(bank.one("otherwise", language, chance)), bank.call(topic["instead"], chance)]


def looking_up(bank: Bank, topic: Topic, language: str, phrase: str, chance: random.Random) -> list[Step]:
    """The same task is asked for, and how it is done is looked up before."""
    page = bank.call(topic["page"], chance)
    search = bank.call({"tool": "search", "query": chance.choice(topic["queries"]), "output": topic["found"]}, chance)
    looked_up = chance.choice(([page], [search, page], [page, search]))
    done = [bank.shell(command, "", chance) for command in topic["steps"]]
    return [user(phrase), *looked_up, *done, agent(bank.one("done", language, chance))]


OCCURRENCE: dict[str, SceneOf] = {
    REPEATED_CORRECTION: correction,
    RULE_VIOLATED: correction,
    STALE_MEMORY: correction,
    RECURRING_FAILURE: failure,
    CONFIGURATION_DRIFT: failure,
    TOOL_MISUSE: misuse,
    MISSING_SKILL: looking_up,
}


def ordinary(bank: Bank, language: str, chance: random.Random) -> list[Step]:
    """A request, a look at a file, perhaps a command, and what came of it."""
    steps: list[Step] = [user(bank.one("requests", language, chance))]
    for _ in range(chance.randint(0, 2)):
        told = chance.choice(bank.talk["calls"])
        steps.append(bank.call(told, chance))
    return [*steps, agent(bank.one("replies", language, chance))]
