"""How many of the words that answer a question are still in a conversation that was condensed (LoCoMo).

    python -m benchmarks.answer_words [LOCOMO_JSON] [--choose]

Per question of the categories 1 to 4: the content words of the answer that are said in the messages that the data
names as its evidence; questions without any are left out, 1,205 remain. Such a word is kept when it stands in what
is kept of one of those messages. The figure is the share kept of a question's words, averaged over the questions.
Beside it, in brackets, the share of all words of all questions together, in which long answers count for more.

Texts are sentences, with the caption of a shared photo. "whole": a share of the tokens of the conversation; "by
session": the same share of each session, as an observer sees them. In "whole", over all ten conversations, the
baselines come within .023 of what was measured before: random .11/.22/.36, lead .16/.25/.37, longest .20/.35/.50,
idf / √length .33/.52/.69 with words counted in the messages of all ten. `condense` counts words in what it condenses
("its own"), or, where it says so, in all sessions of the conversation or in all ten.

The observer is given one person as the user and the other as the assistant, a session as one window.

Nothing is chosen on what is reported: the numbers in `text/condense.py` were chosen on three conversations, the
figures are of the seven others; `--choose` repeats the choice, the best that is no end of its range. Which cues there
are was seen in fits to words of nine conversations, scored on the tenth. Beneath, the same for all ten, to be compared
with figures of others.
LoCoMo is CC BY-NC 4.0: for measuring, never a part of the product.
"""

import json
import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from benchmarks.common import BENCH, parser
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text import condense as condensing
from memory_pipeline.text.condense import condense, rarity_in
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import content_words, words
from memory_pipeline.text.tokens import estimate

LOCOMO = BENCH / "data/locomo10.json"
SHARES = (0.1, 0.2, 0.33)
CHOSEN_ON = 3
"""Conversations, in the order of the file, that the numbers were chosen on."""
CHOICES: dict[str, tuple[float, ...]] = {
    "RARE": (1.0, 2.0, 3.0, 4.0),
    "NAMED": (2.0, 4.0, 6.0, 8.0),
    "OWN": (1.0, 1.5, 2.0, 3.0),
}
CHOICES |= {"ASKED": (0.25, 0.5, 1.0), "LENGTH": (0.5, 0.75, 1.0)}
START = datetime(2023, 5, 8, tzinfo=UTC)

Kept = Mapping[str, Iterable[str]]
"""What is kept of each message."""
Condenser = Callable[["Conversation", float], Kept]


@dataclass(frozen=True)
class Text:
    """A sentence of a message."""

    message_id: str
    text: str


@dataclass(frozen=True, eq=False)
class Conversation:
    messages: Mapping[str, str]
    speakers: Mapping[str, str]
    sessions: Sequence[Sequence[str]]
    """Message ids of each."""
    questions: Sequence[tuple[frozenset[str], tuple[str, ...]]]
    """Words of the answer, and the messages that have them."""

    def texts(self, session: Iterable[str]) -> list[Text]:
        return [Text(i, self.messages[i][s.start : s.end]) for i in session for s in sentences(self.messages[i])]

    def rarity(self) -> Mapping[str, float]:
        return rarity_in([content_words(text) for text in self.messages.values()])


def conversations(path: Path) -> Iterator[Conversation]:
    for sample in json.loads(path.read_text("utf-8")):
        said = sample["conversation"]
        keys = sorted((k for k in said if re.fullmatch(r"session_\d+", k) and said[k]), key=lambda k: int(k[8:]))
        turns = {turn["dia_id"]: turn for key in keys for turn in said[key]}
        messages = {
            i: t["text"] + (f" [shares photo: {t['blip_caption']}]" if t.get("blip_caption") else "")
            for i, t in turns.items()
        }
        yield Conversation(
            messages,
            {i: t["speaker"] for i, t in turns.items()},
            [[turn["dia_id"] for turn in said[key]] for key in keys],
            [found for qa in sample["qa"] if qa["category"] != 5 and (found := _question(qa, messages))],
        )


def _question(qa: Mapping[str, object], messages: Mapping[str, str]) -> tuple[frozenset[str], tuple[str, ...]] | None:
    evidence = qa.get("evidence")
    places = re.findall(r"D:?(\d+):(\d+)", " ".join(evidence)) if isinstance(evidence, list) else []
    ids = tuple(sorted({f"D{int(a)}:{int(b)}" for a, b in places} & messages.keys()))
    said = frozenset[str]().union(*(content_words(messages[i]) for i in ids))
    asked = content_words(str(qa.get("answer", ""))) & said
    return (asked, ids) if asked else None


def first_that_fit(order: Iterable[int], texts: Sequence[str], share: float) -> list[int]:
    costs = [estimate(text) for text in texts]
    room, kept = share * sum(costs), []
    for i in order:
        if costs[i] <= room:
            room -= costs[i]
            kept.append(i)
    return kept


def lead(texts: Sequence[str], share: float) -> list[int]:
    return first_that_fit(range(len(texts)), texts, share)


def randomly(texts: Sequence[str], share: float) -> list[int]:
    return first_that_fit(random.Random(1).sample(range(len(texts)), len(texts)), texts, share)


def longest(texts: Sequence[str], share: float) -> list[int]:
    return first_that_fit(sorted(range(len(texts)), key=lambda i: -len(texts[i])), texts, share)


def rarest(rarity: Mapping[str, float]) -> Callable[[Sequence[str], float], list[int]]:
    def choose(texts: Sequence[str], share: float) -> list[int]:
        scores = [
            math.fsum(rarity.get(w, 0.0) for w in content_words(text)) / math.sqrt(max(1, len(words(text))))
            for text in texts
        ]
        return first_that_fit(sorted(range(len(texts)), key=lambda i: -scores[i]), texts, share)

    return choose


def whole(choose: Callable[[Sequence[str], float], list[int]]) -> Condenser:
    """What is kept of the conversation as one text."""
    return lambda conversation, share: _kept(conversation.texts(conversation.messages), choose, share)


def by_session(choose: Callable[[Sequence[str], float], list[int]]) -> Condenser:
    def kept(conversation: Conversation, share: float) -> Kept:
        found: dict[str, list[str]] = {}
        for session in conversation.sessions:
            found |= _kept(conversation.texts(session), choose, share)
        return found

    return kept


def with_all_sessions(conversation: Conversation, share: float) -> Kept:
    """Session by session, with words counted in all of them."""
    rarity = conversation.rarity()
    return by_session(lambda texts, share: condense(texts, share, rarity))(conversation, share)


def _kept(
    texts: Sequence[Text], choose: Callable[[Sequence[str], float], list[int]], share: float
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for i in choose([t.text for t in texts], share):
        found[texts[i].message_id].append(texts[i].text)
    return found


def observed(conversation: Conversation, share: float) -> Kept:
    """What the extractive observer quotes of the conversation as one window."""
    return _observed(conversation, [[i for session in conversation.sessions for i in session]], share)


def observed_by_session(conversation: Conversation, share: float) -> Kept:
    """What it quotes of each session, without knowing the others."""
    return _observed(conversation, conversation.sessions, share)


def _observed(conversation: Conversation, windows: Iterable[Iterable[str]], share: float) -> Kept:
    found: dict[str, list[str]] = defaultdict(list)
    user = next(iter(conversation.speakers.values()))
    for session in windows:
        said = [
            WindowMessage(
                i, "user" if conversation.speakers[i] == user else "assistant", START, conversation.messages[i]
            )
            for i in session
        ]
        for segment in ExtractiveObserver(budget=share, min_budget=0).observe(said):
            for span in (span for fact in segment.facts for span in fact.evidence):
                found[span.message_id].append(conversation.messages[span.message_id][span.start : span.end])
    return found


def figures(condenser: Condenser, known: Sequence[Conversation], share: float) -> tuple[float, float]:
    """Share kept of a question's words, on average, and of the words of all questions."""
    counts = []
    for conversation in known:
        kept = {i: content_words(" ".join(texts)) for i, texts in condenser(conversation, share).items()}
        for asked, ids in conversation.questions:
            left = asked & frozenset().union(*(kept.get(i, frozenset()) for i in ids))
            counts.append((len(left), len(asked)))
    return sum(a / b for a, b in counts) / len(counts), sum(a for a, _ in counts) / sum(b for _, b in counts)


def report(known: Sequence[Conversation], everywhere: Mapping[str, float]) -> None:
    rows: list[tuple[str, Condenser]] = []
    for name, scope in (("whole", whole), ("by session", by_session)):
        rows += [(f"random, {name}", scope(randomly)), (f"lead, {name}", scope(lead))]
        rows += [(f"longest, {name}", scope(longest)), (f"idf / √length, {name}", scope(rarest(everywhere)))]
    rows += [
        ("extractive observer, whole", observed),
        ("extractive observer, by session", observed_by_session),
        ("condense, whole, its own words", whole(condense)),
        ("condense, whole, words of all ten", whole(lambda texts, share: condense(texts, share, everywhere))),
        ("condense, by session, its own words", by_session(condense)),
        ("condense, by session, of all sessions", with_all_sessions),
    ]
    print(f"{'':40}" + "".join(f"{share:>14.0%}" for share in SHARES))
    for name, condenser in rows:
        found = [figures(condenser, known, share) for share in SHARES]
        print(f"{name:40}" + "".join(f"{f'{each:.3f} ({all_:.3f})':>14}" for each, all_ in found), flush=True)


def choose(known: Sequence[Conversation]) -> None:
    """The best numbers at a fifth of the tokens, whole and by session alike."""
    best: list[tuple[float, dict[str, float]]] = []
    for values in product(*CHOICES.values()):
        numbers = dict(zip(CHOICES, values, strict=True))
        for name, value in numbers.items():
            setattr(condensing, name, value)
        scopes = (whole(condense), by_session(condense))
        best.append((sum(figures(scope, known, 0.2)[0] for scope in scopes) / len(scopes), numbers))
    for value, numbers in sorted(best, key=lambda each: -each[0])[:30]:
        is_end = any(numbers[name] in (each[0], each[-1]) for name, each in CHOICES.items())
        print(f"{value:.3f}", numbers, "" if is_end else "no end of its range")


def main() -> None:
    options = parser("answer_words", __doc__)
    options.add_argument("locomo", type=Path, nargs="?", default=LOCOMO, metavar="LOCOMO_JSON")
    options.add_argument("--choose", action="store_true", help="print the best settings instead")
    asked = options.parse_args()
    if not asked.locomo.exists():
        sys.exit(f"There is no {asked.locomo}; name the file locomo10.json.")
    known = list(conversations(asked.locomo))
    if asked.choose:
        choose(known[:CHOSEN_ON])
        return
    everywhere = rarity_in([content_words(text) for each in known for text in each.messages.values()])
    for some, which in ((known[CHOSEN_ON:], " that the numbers were not chosen on"), (known, "")):
        questions = sum(len(each.questions) for each in some)
        print(f"{len(some)} conversations{which}: {questions} questions")
        report(some, everywhere)


if __name__ == "__main__":
    main()
