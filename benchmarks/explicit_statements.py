"""Whether what people lay down in explicit words is kept and high without a model, and other talk is not, per language.

    python -m benchmarks.explicit_statements [--tuned] [--wrong] [--histories DIR]

The messages of `explicit/held` were written by somebody who knew neither the words that are looked for nor the code;
nothing was tuned on them. With `--tuned` those of `explicit/tune` to `explicit/tune6` are taken, which the words were
chosen with. Each message is observed twice: in a session of its own with a short reply, and in the middle of a long
one. An answer comes after the question that it answers. `found` is the share of the statements that overlap a high
observation in both sessions, `false` the share of the other messages in a high one in either. The baseline is the role
of `benchmarks/languages.py`: a sentence is high if its kind is a rule, a preference or a decision.

With `--histories`, the folders below DIR are projects with Markdown files that SpecStory wrote (`.specstory/history` of
public repositories): real people, whose words no phrase was written for. Printed are the typed messages of each project
and the statements that would be offered, which a reader then judges.

Last, sde-bench's visible half: conversations that decide nothing and have a high observation, and turns that state a
decision and are in an observation.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import SHARED, parser
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import user_statements
from memory_pipeline.observations.types import Fact, WindowMessage
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.text.explicit import statements
from memory_pipeline.text.kinds import NORMATIVE, kind_of_user
from memory_pipeline.text.lines import stands_alone
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.text.sentences import sentences

FOLDER = Path(__file__).parent / "explicit"
TUNED = ("tune", "tune2", "tune3", "tune4", "tune5", "tune6")
SDE = SHARED / "bench" / "data" / "sde" / "visible.json"
NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
AROUND = (
    ("user", "Look at the failing import job and tell me what you see."),
    ("assistant", "The job stops in `load_rows` after 4,000 rows because a column is missing in the last file."),
    ("tool", "rows: 4000"),
    ("user", "Show me the last file."),
    ("assistant", "It was written on Monday and has 11 columns instead of 12; `region` is missing."),
    ("user", "And who writes it?"),
    ("assistant", "The nightly export in `jobs/export.py`, which was changed last week."),
)
"""What is said before and after a message in a long session."""


def window(turns: Sequence[tuple[str, str]]) -> list[WindowMessage]:
    return [WindowMessage(f"m{i}", role, NINE + timedelta(minutes=i), text) for i, (role, text) in enumerate(turns)]


def observed(turns: Sequence[tuple[str, str]], *, is_long: bool) -> list[Fact]:
    messages = window(turns)
    segments = ExtractiveObserver().observe(messages) if is_long else user_statements(messages)
    return [fact for segment in segments for fact in segment.facts]


def sessions(message: dict[str, Any]) -> Iterator[tuple[list[tuple[str, str]], int, bool]]:
    """The short and the long session of a message, with its position and whether the session is long."""
    asked = [("assistant", message["question"])] if "question" in message else []
    before = [("user", "Have a look at the open points."), *asked] if asked else []
    yield [*before, ("user", message["text"]), ("assistant", "OK.")], len(before), False
    before = [*AROUND, *asked]
    yield [*before, ("user", message["text"]), ("assistant", "OK."), *AROUND[3:]], len(before), True


def is_found(message: dict[str, Any]) -> bool:
    start = message["text"].index(message["says"])
    end = start + len(message["says"])
    return all(
        any(
            fact.priority == HIGH and s.message_id == f"m{position}" and s.start < end and start < s.end
            for fact in observed(turns, is_long=is_long)
            for s in fact.evidence
        )
        for turns, position, is_long in sessions(message)
    )


def is_false(message: dict[str, Any]) -> bool:
    return any(
        fact.priority == HIGH and any(s.message_id == f"m{position}" for s in fact.evidence)
        for turns, position, is_long in sessions(message)
        for fact in observed(turns, is_long=is_long)
    )


def by_kind(message: dict[str, Any]) -> bool:
    """The baseline."""
    text = message["text"]
    return any(kind_of_user(text[s.start : s.end]) in NORMATIVE for s in sentences(text))


def sde() -> tuple[int, int, int, int]:
    """Decoys with a high, decoys, deciding turns that are observed, deciding turns."""
    data = json.loads(SDE.read_text("utf-8"))
    high = sum(any(fact.priority == HIGH for fact in _of_chat(decoy["turns"])) for decoy in data["decoys"])
    decided = [
        any(s.message_id == f"m{turn}" for fact in _of_chat(chat) for s in fact.evidence)
        for task in data["tasks"]
        for chat, turn in zip(task["chats"], task["decided"], strict=False)
    ]
    return high, len(data["decoys"]), sum(decided), len(decided)


def _of_chat(turns: Sequence[dict[str, str]]) -> list[Fact]:
    typed = sum(turn["role"] == "user" for turn in turns)
    return observed([(turn["role"], turn["text"]) for turn in turns], is_long=typed >= MIN_TYPED)


_TURN = re.compile(r"^_\*\*(User|Assistant|Agent)[^*\n]*\*\*_\s*$", re.MULTILINE)


def typed_messages(history: str) -> Iterator[str]:
    """The user's messages in a file that SpecStory wrote."""
    _, *parts = _TURN.split(history)
    for speaker, words in zip(parts[::2], parts[1::2], strict=True):
        if speaker == "User" and (text := words.strip().removesuffix("---").strip()):
            yield text


def offered_lines(messages: Sequence[str]) -> dict[str, None]:
    """The explicit statements that stand alone, each once and in order."""
    found: dict[str, None] = {}
    for number, text in enumerate(messages):
        message = WindowMessage(f"m{number}", "user", NINE, text, quoted=tuple(quoted_spans(text)))
        for statement in statements(message.own):
            line = " ".join(text[statement.start : statement.end].split())
            if stands_alone(line):
                found[line] = None
    return found


def print_histories(folder: Path) -> None:
    for project in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(project.rglob("*.md"))
        messages = [text for file in files for text in typed_messages(file.read_text("utf-8", "replace"))]
        lines = offered_lines(messages)
        print(f"{project.name}: {len(messages)} typed messages, {len(lines)} lines")
        print("".join(f"    {line}\n" for line in lines), end="")


MIN_TYPED = 5
"""Typed messages from which a session is observed as a whole."""


def main() -> None:
    options = parser("explicit_statements", __doc__)
    options.add_argument("--tuned", action="store_true", help="the messages that the words were chosen with")
    options.add_argument("--wrong", action="store_true", help="print what is missed and what is found wrongly")
    options.add_argument("--histories", type=Path, metavar="DIR", help="projects with histories that SpecStory wrote")
    asked = options.parse_args()
    if asked.histories:
        print_histories(asked.histories)
        return
    for part in TUNED if asked.tuned else ("held",):
        print(f"{part:20}{'statements':>12}{'found':>8}{'by kind':>9}{'others':>8}{'false':>8}{'by kind':>9}")
        for file in sorted((FOLDER / part).glob("*.toml")):
            data = tomllib.loads(file.read_text("utf-8"))
            said, others = data["statement"], data["other"]
            missed = [m for m in said if not is_found(m)]
            false = [m for m in others if is_false(m)]
            figures = (1 - len(missed) / len(said), sum(map(by_kind, said)) / len(said))
            wrong = (len(false) / len(others), sum(map(by_kind, others)) / len(others))
            print(
                f"{file.stem:20}{len(said):>12}{figures[0]:>8.2f}{figures[1]:>9.2f}"
                f"{len(others):>8}{wrong[0]:>8.2f}{wrong[1]:>9.2f}"
            )
            for name, messages in (("missed", missed), ("false", false)) if asked.wrong else ():
                for message in messages:
                    print(f"    {name}: {message.get('says', message['text'])}")
    if SDE.exists():
        high, decoys, observed_turns, turns = sde()
        print(f"sde-bench: {high} of {decoys} decoys have a high; {observed_turns} of {turns} deciding turns observed")


if __name__ == "__main__":
    main()
