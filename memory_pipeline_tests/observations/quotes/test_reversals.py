"""What is taken back later is not kept as true; what takes it back is."""

from datetime import UTC, datetime, timedelta

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Fact, WindowMessage
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
FILLER = ["assistant: Let me look at the configuration to see what is there, and then at the logs of it."] * 12
"""Plans, which are never kept, and which buy room for everything else."""


def facts(*turns: str) -> dict[str, Fact]:
    """The facts of a window whose budget has room for everything, by their text."""
    parts = [turn.split(": ", 1) for turn in [*FILLER, *turns]]
    said = [WindowMessage(f"m{i}", role, START + timedelta(minutes=i), text) for i, (role, text) in enumerate(parts)]
    segments = ExtractiveObserver(0.5).observe(said)
    return {fact.text: fact for segment in segments for fact in segment.facts}


REDIS = "Let's use Redis for the cache of the search service."
TALK = "assistant: The cache of the search service is set up in src/search/cache.py now."


@each(
    "reversal",
    [
        "Let's go with Postgres instead of Redis, the team knows it.",
        "On second thought, let's use Memcached for the cache.",
        "I changed my mind, we use Memcached for the cache of the search.",
        "Let's drop it after all and keep the cache in memory, rather than in Redis.",
        "No, actually we will keep the cache in memory, one service less to run.",
        "We should stop using Redis, let's keep everything in Postgres.",
    ],
)
def test_a_decision_that_the_person_reverses_is_dropped_for_the_reversal(reversal: str) -> None:
    found = facts(f"user: {REDIS}", TALK, f"user: {reversal}")
    assert REDIS not in found
    assert reversal in found
    assert found[reversal].trust == "user"


def test_a_rule_is_dropped_for_what_reverses_it() -> None:
    rule, reversal = "Always use Redis for caches, never files.", "keep files instead of Redis"
    found = facts(f"user: {rule}", TALK, f"user: {reversal}")
    assert rule not in found and found[reversal].priority == "high"


@each(
    "other",
    [
        "Let's use Postgres instead of SQLite for the orders.",  # of something else
        "Is Memcached better than Redis for the cache, or should we use it instead of Redis?",  # only asked
        "The deployment of the search service is on Friday.",
    ],
)
def test_a_decision_that_nothing_takes_back_stays(other: str) -> None:
    assert REDIS in facts(f"user: {REDIS}", TALK, f"user: {other}")


@each("words", ["Scratch that.", "yeah, you can undo that", "Never mind.", "my mistake, ignore that"])
def test_the_person_takes_back_what_they_said_last(words: str) -> None:
    wish = "The theme selector must push its update to the next tick, because it flickers."
    assert wish in facts(f"user: {wish}", TALK)
    assert wish not in facts(f"user: {wish}", TALK, f"user: {words}")


CLAIM = (
    "The root cause is the webhook of the carrier, which retries because our endpoint answers too slowly, so every "
    "event is stored twice."
)


@each(
    "retraction",
    [
        "assistant: I was wrong: the webhook of the carrier retries nothing, no event is stored twice.",
        "user: the webhook of the carrier is not the cause, no event is stored twice",
    ],
)
def test_a_cause_that_proved_wrong_is_dropped_and_what_was_found_instead_is_kept(retraction: str) -> None:
    found = facts("user: why are all mails of the carrier sent twice?", f"assistant: {CLAIM}", "tool: ok", retraction)
    assert not any("answers too slowly" in text for text in found)
    assert any("webhook of the carrier" in text for text in found)


def test_what_is_pasted_takes_nothing_back() -> None:
    paste = "Let's go with Postgres instead of Redis."
    said = [
        *(WindowMessage(f"f{i}", "assistant", START, turn) for i, turn in enumerate(FILLER)),
        WindowMessage("m0", "user", START, REDIS),
        WindowMessage("m2", "user", START, paste, quoted=((0, len(paste)),)),
    ]
    texts = [f.text for s in ExtractiveObserver(0.5).observe(said) for f in s.facts]
    assert REDIS in texts


WANTED = "I don't want to track command errors in telemetry"
TELEMETRY = "assistant: The telemetry of the commands is sent by a hook of the root command in cmd/root.go now."


@each(
    ("words", "reversal"),
    [
        (WANTED, "I want to track command errors in telemetry"),
        (WANTED, "sorry, yes. I want to track errors in telemetry"),
        ("Let's keep command errors in the telemetry", "I don't want command errors in the telemetry"),
        ("I'd prefer to have weekly reports of the depot", "ok, no weekly reports of the depot then"),
        ("Bitte immer Wochenberichte an die Spedition schreiben.", "Ich will keine Wochenberichte an die Spedition."),
    ],
)
def test_what_the_person_says_later_with_the_opposite_sign_takes_it_back(words: str, reversal: str) -> None:
    assert words in facts(f"user: {words}", TELEMETRY)
    assert words not in facts(f"user: {words}", TELEMETRY, f"user: {reversal}")
    assert words in facts(f"user: {reversal}", TELEMETRY, f"user: {words}")  # the later one holds


@each(
    "other",
    [
        "I want to track page views in telemetry",
        "should I want to track command errors in telemetry?",
        "the log says: I want to track",
    ],
)
def test_what_is_of_something_else_takes_nothing_back(other: str) -> None:
    assert WANTED in facts(f"user: {WANTED}", TELEMETRY, f"user: {other}")


def test_the_model_takes_back_nothing_that_the_person_wants() -> None:
    said = "assistant: I want to track command errors in telemetry."
    assert WANTED in facts(f"user: {WANTED}", TELEMETRY, said, "tool: ok")
