"""The lines of a reflector's answer, whatever of the format it kept to."""

import pytest

from memory_pipeline.reflections.model.parsing import MAX_LINES, ParsedLine, parse_reflection
from memory_pipeline.reflections.types import UNFILED
from memory_pipeline_tests.growth import grows_evenly
from memory_pipeline_tests.rows import SECTIONS

TEXT = "In shop-api packages are installed with uv."


def lines(answer: str) -> list[ParsedLine]:
    return list(parse_reflection(answer, SECTIONS).lines)


def test_a_line_as_it_is_asked_for() -> None:
    (line,) = lines(f"* 🔴 System Architecture | state_change [o7 o9 -o2] {TEXT}")
    assert line == ParsedLine(TEXT, (7, 9), (2,), 2, "state_change", "high")


@pytest.mark.parametrize(
    "answer",
    [
        f"* 🔴 Hard Rules | rule [o3 o7] {TEXT}",
        f"- 🔴 **Hard Rules** | rule [o3, o7] {TEXT}",
        f"1. 🔴 Hard Rules | rule | [o3][o7] | {TEXT}",
        f"🔴 Hard Rules | rule [o3; o7]: {TEXT}",
        f"* 🔴 hard rules - rule - [#3 #7] - {TEXT}",
        f"* 🔴 Hard Rules | rule (o3 and o7) {TEXT}",
        f"* [!] Hard Rules | rule [o3 o7] {TEXT}",
        f"* 🔴 rule | Hard Rules [O3,O7] {TEXT}",
        f"* 🔴 Hard Rules | rule {TEXT} [o3 o7]",
        f"* 🔴 Hard Rules | rule: {TEXT[:-1]} [o3] [o7].",
        "* 🔴 Hard Rules | rule [o3 o7] In shop-api packages\n  are installed with uv.",
        f"Here they are:\n\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n\nI hope this helps.",
        f"<think>o1 is weak.\n* 🔴 Hard Rules | rule [o1] No.</think>\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}",
        f"```\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n```",
        f"## Hard Rules\n\n* 🔴 rule [o3 o7] {TEXT}",
        f"* HIGH | Hard Rules | rule [o3 o7] {TEXT}",
        f"<lines>\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n</lines>",
    ],
)
def test_what_models_make_of_it(answer: str) -> None:
    (line,) = lines(answer)
    assert (line.text, line.sources) == (TEXT, (3, 7))
    assert (line.section, line.kind, line.priority) == (1, "rule", "high")


def test_what_is_not_said_is_none() -> None:
    (line,) = lines(f"* [o3] {TEXT}")
    assert line == ParsedLine(TEXT, (3,), (), None, None, None)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "nothing worth keeping",
        "I cannot help with that.",
        f"* 🔴 Hard Rules | rule {TEXT}",  # no source
        f"* 🔴 Hard Rules | rule [] {TEXT}",
        f"* 🔴 Hard Rules | rule [src/app.py] {TEXT}",
        f"* 🔴 Hard Rules | rule [2025] {TEXT}",  # a number is no observation
        "* 🔴 Hard Rules | rule [o3]",  # no text
        "* 🔴 MARK section | kind [oNUMBER oNUMBER] the line",
    ],
)
def test_what_is_no_line(answer: str) -> None:
    assert lines(answer) == []


def test_several_lines_and_their_words_stay_apart() -> None:
    found = lines(f"* 🔴 Hard Rules | rule [o1] {TEXT}\n* 🟢 Patterns | convention [o2] Tests run with make test-db.\n")
    assert [(line.sources, line.priority, line.section) for line in found] == [((1,), "high", 1), ((2,), "low", 3)]


def test_a_text_that_begins_like_a_mark_is_left_whole() -> None:
    (line,) = lines("* 🔴 Hard Rules | rule [o1] Patterns of retries: never more than three.")
    assert line.text == "Patterns of retries: never more than three."


def test_brackets_within_the_text_stay() -> None:
    (line,) = lines("* 🔴 Patterns | convention [o1] Name branches feature/[ticket] (see docs/git.md).")
    assert line.text == "Name branches feature/[ticket] (see docs/git.md)."


def test_of_an_answer_that_is_cut_off_the_last_line_goes() -> None:
    whole = f"* [o1] {TEXT}\n* [o2] Never deploy"
    assert [line.sources for line in parse_reflection(whole, SECTIONS, is_cut=True).lines] == [(1,)]
    assert [line.sources for line in parse_reflection(f"* [o1] {TEXT}\n* 🔴 Ha", SECTIONS, is_cut=True).lines] == [(1,)]


def test_ranges() -> None:
    assert lines(f"* [o3-o5] {TEXT}")[0].sources == (3, 4, 5)
    assert lines(f"* [o3-o5000] {TEXT}")[0].sources == (3, 5000)


def test_the_persons_section_goes_by_its_name_too() -> None:
    found = parse_reflection(f"* 🔴 Ann | preference [o1] {TEXT}", ("Ann", *SECTIONS[1:])).lines
    assert [line.section for line in found] == [0]


def test_a_loop_is_told() -> None:
    assert parse_reflection(f"* 🔴 Hard Rules | rule [o1] {TEXT}\n" * 30, SECTIONS).loops
    assert not parse_reflection(f"* 🔴 Hard Rules | rule [o1] {TEXT}", SECTIONS).loops


@pytest.mark.parametrize(
    "noise",
    [
        "[",
        "* [o1",
        "[o1 " * 3,
        "* 🔴 ",
        "| ",
        "o1 ",
        "(o1)",
        "* Hard Rules ",
        "-o",
        "[o1-o",
        "\n  x",
        "# ",
        "🔴",
        "{",
        "{a,",
        "<summary>",
        "m1a2b3c ",
        "none | ",
    ],
)
def test_a_long_answer_takes_no_time(noise: str) -> None:
    grows_evenly(lambda size: parse_reflection(noise * (size // len(noise)), SECTIONS), 100_000)
    grows_evenly(lambda size: parse_reflection("\n".join(f"* [o{i}] {noise}{i}" for i in range(size)), SECTIONS), 1_250)


def test_there_is_an_end_to_lines() -> None:
    answer = "\n".join(f"* [o{i}] The worker number {i} is called w{i}." for i in range(1, 900))
    assert len(lines(answer)) == MAX_LINES


# --- what fits no section, tags, the summary ---


@pytest.mark.parametrize(
    "answer",
    [
        f"* 🔴 none | progress [o3] {TEXT}",
        f"* 🔴 none | [o3] {TEXT}",
        f"* 🔴 Reflected | statement [o3] {TEXT}",
        f"* 🔴 Deployment of parcels | convention [o3] {TEXT}",  # a section that nobody knows is no part of the text
        f"## Reflected (2025-03-05)\n* 🔴 convention [o3] {TEXT}",
        f"## None\n* 🔴 convention [o3] {TEXT}",
    ],
)
def test_a_line_may_belong_to_no_section(answer: str) -> None:
    (line,) = lines(answer)
    assert (line.section, line.text) == (UNFILED, TEXT)


def test_a_text_that_begins_with_none_or_has_a_pipe_is_left_whole() -> None:
    texts = "None of the tests needs a network.", "Pipe it: `cat a | sort` and never `sort a`."
    for text in texts:
        for answer in (f"* [o1] {text}", f"* 🔴 Patterns | rule {text} [o1]"):
            assert lines(answer)[0].text == text


@pytest.mark.parametrize(
    "answer",
    [
        f"* 🔴 Hard Rules | rule {{uv, Python packages}} [o3] {TEXT}",
        f"* 🔴 Hard Rules | rule | {{#uv; python packages}} | [o3] {TEXT}",
        f"* 🔴 {{uv, python packages, uv}} Hard Rules | rule [o3] {TEXT}",
    ],
)
def test_tags(answer: str) -> None:
    (line,) = lines(answer)
    assert (line.tags, line.text, line.section) == (("uv", "python packages"), TEXT, 1)


def test_there_is_an_end_to_tags_and_braces_of_the_text_stay() -> None:
    assert lines(f"* {{a, b, c, d, e, f, g}} [o1] {TEXT}")[0].tags == ("a", "b", "c", "d", "e")
    assert lines(f"* {{<b>x</b>, {'y' * 41}, ok}} [o1] {TEXT}")[0].tags == ("ok",)
    (line,) = lines("* [o1] Locks are called {key}.lock, like {key, value}")
    assert (line.tags, line.text) == ((), "Locks are called {key}.lock, like {key, value}")


@pytest.mark.parametrize(
    "end",
    ["<summary>\n{}\n</summary>", "<summary>{}</summary>\n", "<Summary>{}"],
)
def test_the_summary(end: str) -> None:
    said = "Packages moved from pip to uv. `unable to read <hash>` is gone."
    found = parse_reflection(f"* [o1] {TEXT}\n{end.format(said)}", SECTIONS)
    assert found.summary == said
    assert [line.text for line in found.lines] == [TEXT]


def test_a_summary_that_says_nothing_is_none() -> None:
    assert parse_reflection(f"* [o1] {TEXT}\n<summary></summary>", SECTIONS).summary is None
    assert parse_reflection(f"* [o1] {TEXT}", SECTIONS).summary is None
