"""The lines of a reflector's answer, in JSON and without, and what is no line."""

import json
from typing import Any

import pytest

from memory_pipeline.reflections.model.answer import (
    MAX_LINES,
    ParsedLine,
    ParsedReflection,
    ReflectionForm,
    parse_reflection,
    schema,
)
from memory_pipeline.reflections.types import UNFILED
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import grows_evenly
from memory_pipeline_tests.rows import SECTIONS

TEXT = "In shop-api packages are installed with uv."
OTHER = "Never deploy parcels on a Friday."


def lines(answer: str) -> list[ParsedLine]:
    return [line for line in parse_reflection(answer, SECTIONS).lines if not line.known]


LISTED = f"""* 🔴 System Architecture | state_change {{shop-api, packages}} [o7 o9 -o2 -m1a2b3c] {TEXT}
* 🟡 none | rule [o3] {OTHER}
* known [o4 o5 m3f9c21]
<summary>Packages moved to uv.</summary>
"""
ANSWER: dict[str, Any] = {
    "lines": [
        {
            "priority": "high",
            "section": "System Architecture",
            "kind": "state_change",
            "tags": ["shop-api", "packages"],
            "observations": [7, 9],
            "replaces": [2],
            "contradicts": ["m1a2b3c"],
            "text": TEXT,
        },
        {
            "priority": "medium",
            "section": "none",
            "kind": "rule",
            "tags": [],
            "observations": [3],
            "replaces": [],
            "contradicts": [],
            "text": OTHER,
        },
    ],
    "known": [{"observations": [4, 5], "memory": ["m3f9c21"]}],
    "summary": "Packages moved to uv.",
}
READ = ParsedReflection(
    lines=(
        ParsedLine(TEXT, (7, 9), (2,), 2, "state_change", "high", ("shop-api", "packages"), ("m1a2b3c",)),
        ParsedLine(OTHER, (3,), (), UNFILED, "rule", "medium"),
        ParsedLine("", (4, 5), (), None, None, None, known=("m3f9c21",)),
    ),
    summary="Packages moved to uv.",
)


def test_the_same_content_is_the_same_answer_in_json_and_in_lines() -> None:
    ReflectionForm.model_validate(ANSWER)
    assert parse_reflection(LISTED, SECTIONS) == READ
    text = json.dumps(ANSWER, ensure_ascii=False)
    for wrapped in ("%s", "```json\n%s\n```", "Here it is:\n%s\nThat is all.", "<think>\nHm.\n</think>\n%s"):
        assert parse_reflection(wrapped % text, SECTIONS) == READ, wrapped
    assert parse_reflection(text.replace("}]", "},]"), SECTIONS) == READ  # a comma too many


def test_the_schema_asks_for_every_field() -> None:
    line = json.loads(schema())["$defs"]["LineForm"]
    assert list(line["properties"]) == [*ANSWER["lines"][0]] == line["required"]


def test_json_that_was_cut_keeps_its_whole_lines() -> None:
    text = json.dumps(ANSWER, ensure_ascii=False)
    for at in range(0, len(text), 5):
        found = tuple(lines(text[:at]))
        assert found == READ.lines[: sum(json.dumps(t) in text[:at] for t in (TEXT, OTHER))], at


def test_slips_in_json_cost_nothing_else() -> None:
    slips: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"observations": ["o7", "#9"]}, {}),
        ({"observations": "7, 9"}, {}),
        ({"priority": "🔴"}, {}),
        ({"kind": "State change"}, {}),
        ({"section": "system architecture"}, {}),
        ({"section": ""}, {"section": None}),
        ({"priority": "urgent"}, {"priority": "medium"}),
        ({"replaces": [2, 9]}, {"sources": (7,), "replaced": (2, 9)}),
        ({"contradicts": ["-m1a2b3c", "line 3"]}, {}),
    ]
    wrong = []
    for given, told in slips:
        answer = ANSWER | {"lines": [ANSWER["lines"][0] | given]}
        expected = [ParsedLine(**{name: getattr(READ.lines[0], name) for name in ParsedLine.__slots__} | told)]
        if (found := lines(json.dumps(answer))) != expected:
            wrong.append((given, found))
    assert wrong == []
    for fields in ({"observations": []}, {"text": ""}, {"text": 7}, {"text": "uv"}):
        assert lines(json.dumps(ANSWER | {"lines": [ANSWER["lines"][0] | fields, ANSWER["lines"][1]]})) == [
            READ.lines[1]
        ]


DEVIATIONS = (
    f"* 🔴 Hard Rules | rule [o3 o7] {TEXT}",
    f"- 🔴 **Hard Rules** | rule [o3, o7] {TEXT}",
    f"1. 🔴 Hard Rules | rule | [o3 o7] | {TEXT}",
    f"🔴 Hard Rules | rule [o3; o7]: {TEXT}",
    f"* 🔴 hard rules - rule - [o3 o7] - {TEXT}",
    f"* [!] Hard Rules | rule [o3 o7] {TEXT}",
    f"* 🔴 rule | Hard Rules [O3,O7] {TEXT}",
    "* 🔴 Hard Rules | rule [o3 o7] In shop-api packages\n  are installed with uv.",
    f"Here they are:\n\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n\nI hope this helps.",
    f"<think>o1 is weak.\n* 🔴 Hard Rules | rule [o1] No.</think>\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}",
    f"```\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n```",
    f"* HIGH | Hard Rules | rule [o3 o7] {TEXT}",
    f"<lines>\n* 🔴 Hard Rules | rule [o3 o7] {TEXT}\n</lines>",
)


def test_small_deviations_of_lines_are_read() -> None:
    expected = [ParsedLine(TEXT, (3, 7), (), 1, "rule", "high")]
    assert {answer: found for answer in DEVIATIONS if (found := lines(answer)) != expected} == {}


def test_what_is_not_said_is_none() -> None:
    assert lines(f"* [o3] {TEXT}") == [ParsedLine(TEXT, (3,), (), None, None, None)]
    (line,) = lines(f"## Hard Rules\n\n* 🔴 rule [o3] {TEXT}")  # a heading is no part of the format
    assert (line.section, line.kind) == (None, "rule")


def test_what_is_no_line() -> None:
    answers = (
        "",
        "nothing worth keeping",
        "I cannot help with that.",
        f"* 🔴 Hard Rules | rule {TEXT}",  # no source
        f"* 🔴 Hard Rules | rule [] {TEXT}",
        f"* 🔴 Hard Rules | rule [src/app.py] {TEXT}",
        f"* 🔴 Hard Rules | rule [2025] {TEXT}",  # a number is no observation
        f"* 🔴 Hard Rules | rule {TEXT} [o3]",  # the numbers stand before the text
        "* 🔴 Hard Rules | rule [o3]",  # no text
        "* 🔴 MARK section | kind [oNUMBER oNUMBER] the line",
        "{}",
        '{"lines": "none"}',
    )
    assert {answer: found for answer in answers if (found := lines(answer))} == {}


def test_words_of_the_text_that_look_like_marks_stay() -> None:
    texts = (
        "Patterns of retries: never more than three.",
        "Name branches feature/[ticket] (see docs/git.md).",
        "None of the tests needs a network.",
        "Pipe it: `cat a | sort` and never `sort a`.",
        "Locks are called {key}.lock, like {key, value}",
    )
    assert [lines(f"* 🔴 Patterns | convention [o1] {text}")[0].text for text in texts] == [*texts]


def test_of_an_answer_that_is_cut_off_the_last_line_goes() -> None:
    whole = f"* [o1] {TEXT}\n* [o2] Never deploy"
    assert [line.sources for line in parse_reflection(whole, SECTIONS, is_cut=True).lines] == [(1,)]
    assert [line.sources for line in parse_reflection(f"* [o1] {TEXT}\n* 🔴 Ha", SECTIONS, is_cut=True).lines] == [(1,)]


def test_ranges() -> None:
    assert lines(f"* [o3-o5] {TEXT}")[0].sources == (3, 4, 5)
    assert lines(f"* [o3-o5000] {TEXT}")[0].sources == (3, 5000)


def test_sections_by_name() -> None:
    found = parse_reflection(f"* 🔴 Ann | preference [o1] {TEXT}", ("Ann", *SECTIONS[1:])).lines
    assert [line.section for line in found] == [0]
    for name in ("none", "Reflected", "Deployment of parcels"):
        (line,) = lines(f"* 🔴 {name} | convention [o3] {TEXT}")
        assert (line.section, line.kind, line.text) == (UNFILED, "convention", TEXT), name


def test_tags() -> None:
    for head in ("Hard Rules | rule {uv, Python packages}", "{#uv; python packages, uv} Hard Rules | rule"):
        (line,) = lines(f"* 🔴 {head} [o3] {TEXT}")
        assert (line.tags, line.text, line.section) == (("uv", "python packages"), TEXT, 1), head
    assert lines(f"* {{a, b, c, d, e, f, g}} [o1] {TEXT}")[0].tags == ("a", "b", "c", "d", "e")
    assert lines(f"* {{<b>x</b>, {'y' * 41}, ok}} [o1] {TEXT}")[0].tags == ("ok",)


def test_the_summary() -> None:
    said = "Packages moved from pip to uv. `unable to read <hash>` is gone."
    for end in ("<summary>\n{}\n</summary>", "<summary>{}</summary>\n", "<Summary>{}"):
        found = parse_reflection(f"* [o1] {TEXT}\n{end.format(said)}", SECTIONS)
        assert (found.summary, [line.text for line in found.lines]) == (said, [TEXT]), end
    assert parse_reflection(f"* [o1] {TEXT}\n<summary></summary>", SECTIONS).summary is None
    assert parse_reflection(f"* [o1] {TEXT}", SECTIONS).summary is None


def test_a_loop_is_told() -> None:
    assert parse_reflection(f"* 🔴 Hard Rules | rule [o1] {TEXT}\n" * 30, SECTIONS).loops
    assert not parse_reflection(f"* 🔴 Hard Rules | rule [o1] {TEXT}", SECTIONS).loops


def test_there_is_an_end_to_lines() -> None:
    answer = "\n".join(f"* [o{i}] The worker number {i} is called w{i}." for i in range(1, 900))
    assert len(lines(answer)) == MAX_LINES


NOISE = (
    "[",
    "* [o1",
    "[o1 " * 3,
    "* 🔴 ",
    "| ",
    "(o1)",
    "* Hard Rules ",
    "[o1-o",
    "\n  x",
    "# ",
    "{a,",
    "<summary>",
    '{"a":',
)


@pytest.mark.slow
@each("noise", NOISE)
def test_a_long_answer_takes_no_time(noise: str) -> None:
    grows_evenly(lambda size: parse_reflection(noise * (size // len(noise)), SECTIONS), 100_000)
    grows_evenly(lambda size: parse_reflection("\n".join(f"* [o{i}] {noise}{i}" for i in range(size)), SECTIONS), 1_250)
