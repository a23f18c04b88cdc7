"""Whatever a model answers: nothing raises, and what comes out is sound."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.observations.model.answer import MAX_FACTS, ParsedAnswer, ParsedSegment, parse_answer
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline.text.kinds import KINDS
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.observations.model.test_answer import MOVED, NPM, TESTS, WELL_FORMED

PIECES = st.sampled_from(
    [
        *("<", ">", "</", "<facts>", "</facts>", "<segment from='#1'>", "</observations>", "<think>", "</think>"),
        *("* 🔴 ", "  - ", "### ", "Title:", "[#", "#3", "]", "(14:03)", "```", "**", "{", '"', "&lt;", "\n", "\t"),
        *("\u200b", "\u202e", "\ud800"),
    ]
)


def is_sound(answer: ParsedAnswer) -> bool:
    facts = [fact for segment in answer.segments for fact in segment.facts]
    return (
        answer.parsed == (answer.problem is None)
        and len(facts) <= MAX_FACTS
        and all(f.priority in PRIORITIES and f.kind in KINDS and 0 < len(f.text) <= 1000 for f in facts)
        and all("\n" not in f.text and "\u200b" not in f.text and f.text.encode() for f in facts)
        and (answer.form not in ("refusal", "empty", "nothing") or not facts)
    )


@given(st.text(st.characters(codec=None)) | st.lists(PIECES | st.text(max_size=9)).map("".join))
@settings(max_examples=times(3))
def test_any_text_is_read(text: str) -> None:
    assert is_sound(parse_answer(text))


@given(st.lists(st.tuples(st.integers(0, len(WELL_FORMED)), st.integers(0, 40), PIECES | st.just("")), max_size=6))
@settings(max_examples=times(3))
def test_a_damaged_answer_is_read(edits: list[tuple[int, int, str]]) -> None:
    text = WELL_FORMED
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    assert is_sound(parse_answer(text))


@given(st.integers(0, len(WELL_FORMED)))
def test_a_cut_answer_has_no_fact_that_the_whole_one_has_not(end: int) -> None:
    read = parse_answer(WELL_FORMED[:end])
    assert {f for s in read.segments for f in s.facts} <= {NPM, TESTS, MOVED}
    if end < WELL_FORMED.index("</observations>"):
        assert not read.parsed


WORDS = st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=4, max_size=9).map(" ".join)
LINES = st.tuples(
    *(WORDS, st.sampled_from(PRIORITIES), st.sampled_from(KINDS)),
    *(st.times(), st.lists(st.integers(1, 999), min_size=1, max_size=3, unique=True)),
)


@given(st.lists(LINES, max_size=6, unique_by=lambda line: line[0]))
def test_what_is_written_in_the_format_is_read_back(lines: list[tuple]) -> None:  # type: ignore[type-arg]
    emoji = {"high": "🔴", "medium": "🟡", "low": "🟢"}
    facts = tuple(ParsedFact(f"The {w}", p, k, f"{t:%H:%M}", tuple(refs)) for w, p, k, t, refs in lines)
    body = "".join(
        f"* {emoji[f.priority]} {f.kind} ({f.clock}) [{' '.join(f'#{r}' for r in f.refs)}] {f.text}\n" for f in facts
    )
    text = f"<observations>\n<segment from='#1' to='#2'>\n<narrative>One.</narrative>\n<facts>\n{body}</facts>\n"
    read = parse_answer(f"{text}</segment>\n</observations>")
    assert read == ParsedAnswer((ParsedSegment(None, "One.", 1, 2, facts),), parsed=True, form="segments")
