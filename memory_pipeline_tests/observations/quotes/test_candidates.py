"""What a sentence is taken for: its kind, and whether it is high. Each case has its reason."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import accumulate

import pytest

from memory_pipeline.observations.quotes import candidates as weights
from memory_pipeline.observations.quotes.candidates import (
    SAYS_NOTHING_NEW,
    Candidate,
    Weights,
    candidates,
    select,
    shipped_weights,
)
from memory_pipeline.observations.quotes.features import FEATURES, Conversation
from memory_pipeline.observations.quotes.observer import priority_of
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.sentences import squeeze
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)


def weighed(said: list[WindowMessage]) -> list[Candidate]:
    return candidates(Conversation(said), shipped_weights())


CONTEXT = {"user": (), "assistant": (("user", "The worker of the build fails with an error about a lock file."),)}
"""What was said before: the model answers, it does not begin."""


def kept(role: str, text: str, *later: str) -> list[Candidate]:
    """The candidates of one message that are worth keeping; `later` are the messages after it, as `role: text`."""
    before = CONTEXT.get(role, ())
    turns = [*before, (role, text), *(tuple(turn.split(": ", 1)) for turn in later)]
    said = [WindowMessage(f"m{i}", r, START + timedelta(minutes=i), t) for i, (r, t) in enumerate(turns)]
    found = [c for c in weighed(said) if c.unit.position == len(before)]
    assert all(squeeze(text[c.unit.start : c.unit.end]) == c.unit.text for c in found)
    return found


def only(role: str, text: str, *later: str) -> tuple[str, bool]:
    """Kind of the one thing kept, and whether it is high."""
    (found,) = kept(role, text, *later)
    return found.kind, priority_of(found) == "high"


@each(
    ("text", "kind"),
    [
        ("Never use npm in this repository.", "rule"),  # a ban
        ("Always run the linter before you commit.", "rule"),  # a duty
        ("From now on every commit must reference a ticket.", "rule"),  # a change of rules
        ("Don't ever push to main directly.", "rule"),  # a ban in the imperative
        ("no that's wrong, it must not poll", "rule"),  # a correction that lays down a rule
        ("I prefer short functions over long ones.", "preference"),
        ("please use pnpm instead of npm", "preference"),  # polite, and still laid down
        ("Let's go with Postgres because the team knows it.", "decision"),
        ("We decided to keep the monolith, because splitting costs more than it brings.", "decision"),
        ("Remember that staging shares its Redis with dev.", "rule"),
    ],
)
def test_what_a_person_lays_down_is_high(text: str, kind: str) -> None:
    assert only("user", text) == (kind, True)


@each(
    ("text", "kind"),
    [
        ("No, leave it.", "correction"),  # about the moment
        ("No, use the staging database, because production is read-only.", "correction"),  # no words that lay it down
        ("no, we removed the session commands on purpose", "correction"),
        ("The root cause was the missing index on orders.user_id.", "root_cause"),
        ("I think we should never use pip.", "rule"),
        ("Maybe we should always use uv.", "rule"),  # a doubt
        ("Perhaps we should never use pip.", "rule"),
        ("Don't push yet.", "rule"),  # holds until it is done
        ("The export crashed while it wrote, that should never happen.", "statement"),  # a complaint, no rule
        ("Don't run the tests right now.", "rule"),  # for now
        ("Never mind the tests, they are slow anyway.", "statement"),  # "never" that forbids nothing
        ("the staging host is db-2.internal", "statement"),  # worth keeping, not a rule
    ],
)
def test_what_is_said_in_passing_is_kept_and_not_high(text: str, kind: str) -> None:
    assert only("user", text) == (kind, False)


@each(
    "text",
    [
        "Should we always use uv for Python?",
        "should we always use uv for python",  # without its mark
        "We must never use pip, right?",  # an assertion until its last word
        "Is it true that we decided to go with Postgres?”",  # the mark stands inside of quotation marks
        "Should we never deploy on a Friday？",  # a mark of another script
        "Is the root cause of the crash known yet",
        "I was wondering whether we should always use uv.",  # asked indirectly
        "Please tell me if we must never force push.",  # a question in the imperative
        "ok so do we always have to run the tests before pushing",  # behind consent
        "What do you think: should we decide to go with Postgres instead of MySQL",
        "I don't know whether we should always squash.",  # nobody knows yet
        "Any idea why it always fails on CI",
        "Sollen wir immer uv verwenden?",
        "Can you tell me whether we agreed on never using npm?",
        "Should we always run the slow tests before each commit, because the build broke twice last week?",  # long
    ],
)
def test_a_question_is_never_high_in_any_disguise(text: str) -> None:
    found = kept("user", text)
    assert {c.kind for c in found} <= {"question"}
    assert {priority_of(c) for c in found} <= {"low"}


@each(
    "text",
    [
        "Why did you use pip instead of uv?",
        "Didn't we agree to always use uv?",
        "Shouldn't this always run in CI?",
        "why are you always writing comments in German",  # without its mark
    ],
)
def test_a_question_that_corrects_is_a_correction_that_lays_nothing_down(text: str) -> None:
    assert only("user", text) == ("correction", False)


def test_an_answer_beside_a_question_is_not_drawn_down_by_it() -> None:
    question, rule = kept("user", "Is it true that we deploy on Fridays? We never deploy on Fridays.")
    assert (question.kind, priority_of(question)) == ("question", "low")
    assert (rule.unit.text, priority_of(rule)) == ("We never deploy on Fridays.", "high")


@each("text", ["ok", "yes please do it", "ok, continue", "Sounds good, thanks!", "1", "👍", "LGTM", "go ahead", "…"])
def test_acceptance_alone_says_nothing(text: str) -> None:
    assert list(weighed([WindowMessage("m0", "user", START, text)])) == []


def test_a_rule_in_the_middle_of_other_talk_stands_alone() -> None:
    text = "The worker hangs at the last row. We never mock the database, except in src/legacy. Look into it."
    found = {c.unit.text: priority_of(c) for c in kept("user", text)}
    assert found["We never mock the database, except in src/legacy."] == "high"
    assert "high" not in {priority for words, priority in found.items() if "never" not in words}


def test_acceptance_and_orders_around_a_rule_are_not_part_of_it() -> None:
    (found,) = kept("user", "ok, thanks. Never use npm here. Now run the tests again.")
    assert found.unit.text == "Never use npm here."


@each(
    "text",
    [
        "run the tests again",
        "Please push it to the remote.",
        "fix the failing test in src/app.py",
        "ok now commit and push",
        "can you look at the log of the worker",  # polite, and gone when it is done
        "https://github.com/example/tool/issues/386",  # a link alone says nothing
        "'/tmp/screenshots/2025-11-21/at-01.48.00.png'",
    ],
)
def test_an_order_for_the_moment_and_a_mere_reference_are_not_kept(text: str) -> None:
    assert kept("user", text) == []


LOG = "error at foo.py in line 12 of the log\n" * 40


@each(
    "text",
    [
        f"{LOG}\n{LOG}\nNever retry more than twice.",  # words below a paste: kept, but who knows whose they are
        "You must always answer in JSON. " * 90,  # a pasted prompt
    ],
)
def test_a_long_pasted_message_is_never_high(text: str) -> None:
    found = kept("user", text)
    assert found
    assert "high" not in {priority_of(c) for c in found}


def own_and_pasted(text: str) -> tuple[list[Candidate], list[Candidate]]:
    """What is kept of a person's message whose pasted parts stand in ⟦…⟧: of their own words, and of the paste."""
    parts = re.split("[⟦⟧]", text)
    places = list(accumulate(map(len, parts), initial=0))
    quoted = tuple((places[i], places[i + 1]) for i in range(1, len(parts), 2))
    found = weighed([WindowMessage("m0", "user", START, "".join(parts), quoted=quoted)])
    assert all(squeeze("".join(parts)[c.unit.start : c.unit.end]) == c.unit.text for c in found)
    return [c for c in found if c.trust == "user"], [c for c in found if c.trust == "paste"]


def test_the_persons_own_words_around_a_known_paste_are_theirs() -> None:
    own, pasted = own_and_pasted(f"Never use npm here.\n\n⟦{LOG}⟧\n\nAlways log in UTC from now on.")
    assert [(c.unit.text, c.kind, priority_of(c)) for c in own] == [
        ("Never use npm here.", "rule", "high"),
        ("Always log in UTC from now on.", "rule", "high"),
    ]
    assert [priority_of(c) for c in pasted] in ([], ["low"])


@each(
    "paste",
    [
        "Never call the payment service twice for one order.",
        "From now on every commit must reference a ticket.",
        "I prefer short functions over long ones, and so should you.",
        "We decided to go with Postgres because the team knows it.",
        "The root cause was the missing index on the orders table.",
        "No, use the staging database, because production is read-only.",
        "Is it known why the deployment of the worker fails?",
    ],
)
@each("message", ["⟦{}⟧", "they say:\n⟦{}⟧", "⟦{}⟧\n\nok", "so: ⟦{}⟧", "Never use npm.\n⟦{}⟧\nThanks."])
def test_what_is_pasted_is_never_the_persons_rule(paste: str, message: str) -> None:
    own, pasted = own_and_pasted(message.format(paste))
    assert [c.unit.text for c in own] == (["Never use npm."] if "npm" in message else [])
    assert {(c.kind, priority_of(c)) for c in pasted} <= {("statement", "low")}


def test_the_end_of_a_half_recognised_error_is_not_the_persons_rule() -> None:
    error = (
        '⟦Error: 400 {"error": {"message": "ids were found. Each⟧\n block must have a result in the next"}, "id": 1}'
    )
    own, _ = own_and_pasted(f"this results in\n{error}\n\nAlways check the ids first.")
    assert [c.unit.text for c in own if priority_of(c) == "high"] == ["Always check the ids first."]


def test_what_only_announces_a_paste_says_nothing() -> None:
    own, _ = own_and_pasted("We moved the worker to its own host. this is the log of it:\n⟦ERROR gone⟧")
    assert [c.unit.text for c in own] == ["We moved the worker to its own host."]


def test_a_claim_is_not_rejected_or_taken_back_by_something_pasted() -> None:
    paste = "no, I was wrong, the stale lock file was not the cause."
    said = [
        WindowMessage("m0", "user", START, "The build fails with an error about a lock."),
        WindowMessage("m1", "assistant", START, CAUSE),
    ]
    said.append(WindowMessage("m2", "user", START, paste, quoted=((0, len(paste)),)))
    assert [c for c in weighed(said) if c.unit.position == 1]


def test_something_left_open_does_not_draw_down_what_is_changed_beside_it() -> None:
    text = "yeah, leave kubernetes undecided. from today keep tracking events for 180 days instead of 90"
    question, change = kept("user", text)
    assert (question.kind, question.unit.text) == ("question", "yeah, leave kubernetes undecided.")
    assert change.unit.text == "from today keep tracking events for 180 days instead of 90"
    assert (change.kind, priority_of(change)) == ("rule", "high")


@each(
    "text",
    [
        "Let me look at the configuration file to see what must always be set.",  # a plan
        "I'll now fix the failing test in src/app.py and run it again.",
        "Next, I will check the logs of the worker for errors.",
        "Would you like me to also add a test for the new endpoint?",  # an offer
        "Let me know if you want me to change the retry policy as well.",
        "I’ll now fix the failing test in src/app.py and run it again.",  # with a typographer's apostrophe
        "You're absolutely right, I should have used uv here.",  # praise
        "Perfect! The tests pass.",
    ],
)
def test_plans_offers_and_praise_of_the_model_are_not_kept(text: str) -> None:
    assert kept("assistant", text) == []


CAUSE = (
    "The root cause was a stale lock file in /var/run/worker.pid, which the killed worker of the build left behind: "
    "`acquire_lock()` in src/worker.py never looks at its age, so every worker fails with an error about a lock."
)


def priorities(role: str, text: str, *later: str) -> set[str]:
    return {priority_of(c) for c in kept(role, text, *later)}


@each("later", [[], ["user: thanks, and the next thing"], ["tool: rm /var/run/worker.pid: ok"]])
def test_the_models_words_are_never_high(later: list[str]) -> None:
    assert priorities("assistant", CAUSE, *later) == {"medium"}
    assert "high" not in priorities("assistant", "Never use" + CAUSE.removeprefix("The root cause was"), *later)


@each(
    "retraction",
    [
        "assistant: I was wrong, the stale lock file was not the cause.",
        "assistant: The stale lock file is innocent, the worker runs out of memory.",
        "user: the stale lock file had nothing to do with it",
    ],
)
def test_a_claim_that_is_taken_back_later_is_dropped(retraction: str) -> None:
    assert kept("assistant", CAUSE, "tool: ok", retraction) == []


def test_a_retraction_of_something_else_drops_nothing() -> None:
    assert kept("assistant", CAUSE, "tool: ok", "assistant: I was wrong about the colour of the button.")


@each("role", ["tool", "injected"])
def test_nothing_comes_from_tools_and_injected_text(role: str) -> None:
    assert kept(role, "Never use npm. The root cause was a stale lock file in /var/run.") == []


@each(
    "text",
    [
        "永远不要在这个仓库里使用npm，请使用pnpm。",
        "我们决定使用Postgres因为团队熟悉它",
        "Bitte immer uv statt pip verwenden, weil es schneller ist.",
        "Niemals direkt auf main pushen!",
        "Wir haben uns für Postgres entschieden.",
    ],
)
def test_a_short_message_in_another_language_is_kept_whole(text: str) -> None:
    assert [c.unit.text for c in kept("user", text)] == [text]


WORDS = "parcel invoice carrier label retry queue port table index cache token route".split()  # noqa: SIM905
RARITY = {word: 0.3 + 0.1 * number for number, word in enumerate(WORDS)}
WEIGHTS = Weights(0.0, {}, cost=0.3, redundancy=0.8)


def pool(seed: int, size: int = 120) -> list[Candidate]:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 8))) for _ in range(size)]
    return [
        Candidate(Unit(i, 0, len(text), text, "said", (text,)), "statement", "assistant", chance.random(), False)
        for i, text in enumerate(texts)
    ]


def share(candidate: Candidate, kept: list[Candidate]) -> float:
    words = content_words(candidate.unit.text)
    total = sum(RARITY[w] for w in words)
    return max((sum(RARITY[w] for w in words & content_words(k.unit.text)) / total for k in kept), default=0.0)


def slowly(candidates: list[Candidate], token_budget: float) -> list[Candidate]:
    kept: list[Candidate] = []
    left = list(candidates)
    while left:
        left = [c for c in left if estimate(c.unit.text) <= token_budget and share(c, kept) < SAYS_NOTHING_NEW]
        if not left:
            break
        best = max(
            left,
            key=lambda c: (
                c.probability**2 / estimate(c.unit.text) ** WEIGHTS.cost * (1 - WEIGHTS.redundancy * share(c, kept))
            ),
        )
        kept.append(best)
        left.remove(best)
        token_budget -= estimate(best.unit.text)
    return sorted(kept, key=lambda c: c.unit.position)


@pytest.mark.slow
def test_as_when_all_are_compared_with_all() -> None:
    for seed in range(20):
        candidates = pool(seed)
        kept = select(candidates, WEIGHTS, RARITY, token_budget=200)
        assert 10 < len(kept) < len(candidates)
        assert kept == slowly(candidates, 200)


def test_of_the_same_words_one_is_kept() -> None:
    text = "the carrier of each parcel"
    same = [Candidate(Unit(i, 0, 9, text, "said", (text,)), "statement", "assistant", 0.9, False) for i in range(50)]
    assert select(same, WEIGHTS, {}, token_budget=10_000) == same[:1]


SHIPPED = json.loads(files("memory_pipeline.observations.quotes").joinpath(weights.FILE).read_text("utf-8"))


def test_there_is_a_weight_for_each_feature_in_its_order() -> None:
    assert list(shipped_weights().features) == [*FEATURES]


def test_the_file_says_when_how_and_on_what_it_was_fitted() -> None:
    fitted = SHIPPED["fitted"]
    assert "fit_observer.py" in fitted["how"]
    assert len(set(fitted["sessions"])) == 28
    assert fitted["when"] >= "2025"


@each("row", ["fitted_on_labels_scored_on_gold", "session_left_out_gold", "project_left_out_gold"])
def test_the_figures_on_sessions_never_seen_are_those_that_were_asked_for(row: str) -> None:
    figures = SHIPPED["fitted"][row]
    assert figures["recall"] >= 0.65
    assert figures["recall_high"] >= 0.72
    assert figures["high_as_high"] >= 0.60
    assert figures["junk"] <= 0.40
    assert figures["trap_rate"] <= 0.08


@each(
    ("row", "probability"),
    [
        ([0.0, 0.0], 0.5),  # the intercept alone is 0
        ([1.0, 0.0], 0.880797),  # e^2 / (1 + e^2)
        ([1.0, 2.0], 0.5),
        ([900.0, 0.0], 1.0),  # no overflow
        ([-900.0, 0.0], 0.0),
    ],
)
def test_the_probability_is_a_sigmoid_of_the_sum(row: list[float], probability: float) -> None:
    found = Weights(0.0, {"a": 2.0, "b": -1.0}, 0.3, 0.8).probability(row)
    assert found == pytest.approx(probability, abs=1e-6)
