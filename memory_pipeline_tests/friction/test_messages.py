"""What users had to say again, in their own words."""

import time
from typing import Any

from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.messages import messages_in, without_replaced
from memory_pipeline.friction.patterns import FrictionEvent
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event, turns

WORK = ("user: Pack the logs.", "call: Bash(command=pip install zstd)", "result: ok", "assistant: Done.")


def said(text: str, *, before: tuple[str, ...] = WORK, quoted: tuple[tuple[int, int], ...] = ()) -> list[FrictionEvent]:
    made = turns(*before, f"user: {text}")
    found = messages_in(Session(made, "/src/kiln", "kiln", {made[-1].message_id: quoted}), [])
    return [event for event in found if event.evidence[0][0] == made[-1].message_id]


def corrections(text: str, **other: Any) -> list[FrictionEvent]:
    return [event for event in said(text, **other) if event.is_correction]


@each(
    "text",
    [
        "No, use uv, not pip.",
        "Again: the tests belong into the folder tests.",
        "I told you to run the linter before you commit.",
        "How often do I have to ask for type hints in new code.",
        "Nein, nimm uv statt pip.",
        "Schon wieder ohne Tests committet, wie besprochen erst testen.",
        "No, usa uv en vez de pip.",
        "Otra vez olvidaste las pruebas antes del commit.",
        "不对，用 uv，不要用 pip。",
        "我说过，提交之前先运行测试。",
    ],
)
def test_a_correction_in_any_language_is_one_with_its_place_and_cost(text: str) -> None:
    found = corrections(text)
    assert any(text[-6:] in event.text for event in found)
    event = found[0]
    ((message_id, start, end),) = event.evidence
    assert (message_id, text[start:end]) == ("s1-4", event.text)
    assert (event.turns, event.minutes, event.calls) == (4, 4.0, ("pip install",))
    assert (event.cwd, event.project) == ("/src/kiln", "kiln")


def test_what_opens_a_session_follows_nothing() -> None:
    (event,) = corrections("No, use uv, not pip.", before=())
    assert (event.turns, event.minutes, event.calls) == (0, 0.0, ())


@each(
    "text",
    [
        "Thanks!",
        "Great work, thank you.",
        "ok",
        "yes",
        "Danke, passt schon.",
        "Gracias, perfecto.",
        "谢谢",
        "",
        "\x00\x00",
        "‮⁦",
        "{}[]();;;###%%%$$$&&&",
        "x" * 6_001,  # pasted
    ],
)
def test_politeness_and_noise_say_nothing(text: str) -> None:
    assert said(text) == []


@each(
    "text",
    [
        "How does the oven controller read the temperature?",
        "who still uses the old name notifier?",
        "We moved to Postgres 16 last week.",
        "Always run the linter before a commit.",  # a rule may be of new work
    ],
)
def test_what_has_no_cue_corrects_nothing(text: str) -> None:
    assert [event.text for event in said(text)] == [text]
    assert corrections(text) == []


def test_a_bare_no_makes_the_sentence_behind_it_a_correction() -> None:
    (one,) = corrections("No. The glaze belongs into its own module.")
    assert one.text == "No. The glaze belongs into its own module."


def test_what_a_user_quoted_does_not_count() -> None:
    text = "No, use uv, not pip."
    assert said(text, quoted=((0, len(text)),)) == []
    assert corrections(text) != []


def test_what_an_assistant_or_a_tool_says_does_not_count() -> None:
    made = turns("assistant: No, use uv, not pip.", "call: Bash(command=make)", "fails: No, use uv, not pip.")
    assert messages_in(Session(made), []) == []


@each(
    ("older", "newer", "stands"),
    [
        ("No, use pnpm for the frontend.", "We go with npm rather than pnpm.", False),
        ("No, use pnpm for the frontend.", "The tests are slow.", True),
        ("Nein, nimm pnpm fürs Frontend.", "Wir nehmen npm statt pnpm.", False),
        ("No, usa pnpm para el frontend.", "Usamos npm en vez de pnpm.", False),
    ],
)
def test_a_correction_stands_until_something_takes_its_place(older: str, newer: str, stands: bool) -> None:
    one, other = event(older, "s1", ago=2), event(newer, "s2")
    assert without_replaced([one, other]) == ([one, other] if stands else [other])
    before = event(newer, "s2", ago=5)
    assert without_replaced([one, before]) == [one, before]
    asked = event(f"{newer[:-1]}?", "s2")
    assert without_replaced([one, asked]) == [one, asked]


def test_a_mind_that_changed_in_another_project_ends_nothing() -> None:
    one = event("No, use pnpm for the frontend.", "s1", ago=2, project="kiln")
    same, other = (event("We go with npm rather than pnpm.", "s2", project=name) for name in ("kiln", "cli"))
    assert without_replaced([one, other]) == [one, other]
    assert without_replaced([one, same]) == [same]


def test_thousands_of_corrections_are_compared_in_no_time() -> None:
    events = [event(f"Use tool{i % 500}, not gadget{i % 700}.", f"s{i}", ago=i % 7) for i in range(5_000)]
    began = time.process_time()
    assert without_replaced(events) == events  # none names what another gives up
    assert time.process_time() - began < 20
