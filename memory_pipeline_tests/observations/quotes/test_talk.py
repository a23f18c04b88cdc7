"""Conversations that are no work on code are told from those that are, and kept by their rare words."""

from datetime import UTC, datetime, timedelta

from memory_pipeline.observations.quotes.features import Conversation
from memory_pipeline.observations.quotes.observer import MIN_MESSAGES_OF_TALK, ExtractiveObserver, is_talk
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
CHAT = (
    "user: Hey, how have you been these days?",
    "assistant: Pretty good, thanks! It was a long week at work and I am glad that it is over.",
    "user: I know the feeling. We went to the sea with the kids on Sunday.",
    "assistant: That sounds lovely, I hope that it was warm enough for all of you.",
    "user: It was! Oliver found an ammonite near Charmouth and wants to become a palaeontologist.",
    "assistant: How sweet. My sister Melanie was like that with her telescope.",
    "user: Is she still into it? It is a nice thing to have in a family.",
    "assistant: Yes, she works at the observatory in Armagh since last March.",
    "user: That is so good to hear. You must be proud of her.",
    "assistant: I am. It is good to talk to you, as it always is.",
)


SMALL = ("user: That is good to hear, thanks!", "assistant: Pretty good, thanks! How have you been?") * 6
"""What is said again and again tells nothing."""


def said(*turns: str) -> list[WindowMessage]:
    parts = [turn.split(": ", 1) for turn in turns]
    return [WindowMessage(f"m{i}", role, START + timedelta(minutes=i), text) for i, (role, text) in enumerate(parts)]


@each(
    ("turns", "expected"),
    [
        (CHAT, True),
        (CHAT[: MIN_MESSAGES_OF_TALK - 1], False),  # too little to tell
        ((*CHAT, "tool: ls"), False),
        ((*CHAT[:7], "user: Fix `main.py`.", "assistant: It is in src/app.ts now.", "user: Use --strict."), False),
        ((*CHAT[:7], *["assistant: Let me look at it."] * 3), False),
        (("injected: a reminder", *CHAT), True),
    ],
)
def test_what_is_talk(turns: tuple[str, ...], expected: bool) -> None:
    assert is_talk(Conversation(said(*turns))) is expected


def test_of_talk_the_rare_words_are_kept_within_the_budget() -> None:
    messages = said(*CHAT, *SMALL)
    observer = ExtractiveObserver(0.25, min_budget=0)
    facts = [fact for segment in observer.observe(messages) for fact in segment.facts]
    kept = " ".join(fact.text for fact in facts)
    assert "Armagh" in kept and "telescope" in kept and "been" not in kept
    texts = {m.message_id: m.text for m in messages}
    assert all(texts[s.message_id][s.start : s.end] == fact.text for fact in facts for s in fact.evidence)
    assert sum(len(fact.text) for fact in facts) <= 0.27 * sum(len(m.text) for m in messages)
