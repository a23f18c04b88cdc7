"""What users had to say again, in their own words."""

import time

import pytest

from memory_pipeline.friction.messages import Said, of_one_mind, said_in, standing
from memory_pipeline_tests.friction.made import event, turns

WORK = ("user: Pack the logs.", "call: Bash(command=pip install zstd)", "result: ok", "assistant: Done.")


def said(text: str, *, before: tuple[str, ...] = WORK, quoted: tuple[tuple[int, int], ...] = ()) -> Said:
    made = turns(*before, f"user: {text}")
    found = said_in(made, [], {made[-1].message_id: quoted}, "/src/kiln", "kiln")
    return Said(*([e for e in of_kind if e.evidence[0][0] == made[-1].message_id] for of_kind in found))


def heard(texts: list[str], words: str) -> bool:
    return any(words in text for text in texts)


@pytest.mark.parametrize(
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
    found = said(text)
    assert heard([e.text for e in found.corrections], text[-6:])
    event = found.corrections[0]
    ((message_id, start, end),) = event.evidence
    assert (message_id, text[start:end]) == ("s1-4", event.text)
    assert (event.turns, event.minutes, event.did) == (4, 4.0, {"ran pip install"})
    assert not event.opens
    assert (event.cwd, event.project) == ("/src/kiln", "kiln")


def test_what_opens_a_session_follows_nothing() -> None:
    (event,) = said("No, use uv, not pip.", before=()).corrections
    assert (event.opens, event.did) == (True, frozenset())


@pytest.mark.parametrize(
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
    assert said(text) == ([], [], [])


def test_a_question_is_no_correction_and_a_change_of_mind_is_a_change() -> None:
    asked = said("How does the oven controller read the temperature?")
    assert (asked.corrections, asked.changes) == ([], [])
    assert [e.text for e in said("We moved to Postgres 16 last week.").changes] == [
        "We moved to Postgres 16 last week."
    ]


def test_a_bare_no_makes_the_sentence_behind_it_a_correction() -> None:
    (one,) = said("No. The glaze belongs into its own module.").corrections
    assert one.text == "No. The glaze belongs into its own module."


def test_what_a_user_quoted_does_not_count() -> None:
    text = "No, use uv, not pip."
    assert said(text, quoted=((0, len(text)),)) == ([], [], [])
    assert said(text).corrections != []


def test_what_an_assistant_or_a_tool_says_does_not_count() -> None:
    made = turns("assistant: No, use uv, not pip.", "call: Bash(command=make)", "fails: No, use uv, not pip.")
    assert said_in(made, [], {}, None, None) == ([], [], [])


@pytest.mark.parametrize(
    ("older", "newer", "stands"),
    [
        ("Use pnpm for the frontend.", "We go with npm rather than pnpm.", False),
        ("Use pnpm for the frontend.", "The tests are slow.", True),
        ("Nimm pnpm fürs Frontend.", "Wir nehmen npm statt pnpm.", False),
        ("Usa pnpm para el frontend.", "Usamos npm en vez de pnpm.", False),
    ],
)
def test_a_correction_stands_until_something_takes_its_place(older: str, newer: str, stands: bool) -> None:
    one = event(older, "s1", ago=2)
    assert (standing([one], [event(newer, "s2")]) == [one]) is stands
    assert standing([one], [event(newer, "s2", ago=5)]) == [one]  # it was said before


def test_a_mind_that_changed_in_another_project_ends_nothing() -> None:
    one = event("Use pnpm for the frontend.", "s1", ago=2, project="kiln")
    assert standing([one], [event("We go with npm rather than pnpm.", "s2", project="cli")]) == [one]
    assert standing([one], [event("We go with npm rather than pnpm.", "s2", project="kiln")]) == []


def test_of_two_minds_the_later_is_left() -> None:
    older, newer = event("Use pnpm for the frontend.", "s1", ago=1), event("Use npm, not pnpm, here.", "s2")
    assert of_one_mind([older, newer]) == (newer,)
    assert of_one_mind([older]) == (older,)


def test_thousands_of_corrections_are_compared_in_no_time() -> None:
    events = [event(f"Use tool{i % 500}, not gadget{i % 700}.", f"s{i}", ago=i % 7) for i in range(5_000)]
    began = time.process_time()
    assert standing(events, events) == events  # none names what another gives up
    assert time.process_time() - began < 20
