"""What of a daily log is a person's note: their paragraphs and items, never a word of ours."""

from datetime import date

from hypothesis import example, given
from hypothesis import strategies as st

from memory_pipeline.markdown.blocks import put_block
from memory_pipeline.workspace.daily_log.notes import LONG, own_words, paragraphs
from memory_pipeline.workspace.daily_log.render import LogFact, LogSegment, LogWindow, render_observations
from memory_pipeline_tests.cases import each

OURS = render_observations(
    LogWindow(
        *("0123456789ab", "worker", "09:40", "compaction", 1, 2),
        [LogSegment("Debugged it", "Two functions shared a trigger.", [LogFact("high", "09:15", "Never share it.")])],
        "Fixing the worker",
    ),
    date(2025, 3, 5),
)
BLOCK = put_block("", "observations:0123456789ab", OURS).text
OPENING, CLOSING = BLOCK.splitlines()[0], BLOCK.splitlines()[-1]


def notes(log: str) -> list[tuple[int, str]]:
    """Line and words of each."""
    return [(note.line, " ".join(note.text.split())) for note in paragraphs(own_words(log))]


def texts(log: str) -> list[str]:
    return [text for _, text in notes(log)]


def test_a_paragraph_is_one_note_with_its_line() -> None:
    assert notes("# 2025-03-05\n\nNever deploy on a Friday,\nit broke twice.\n\nUse uv.\n") == [
        (3, "Never deploy on a Friday, it broke twice."),
        (6, "Use uv."),
    ]


@each("heading", ["### 🔭 Reflected", "### 💭 Reflection"])
def test_what_was_reflected_is_ours_also_when_its_fences_are_gone(heading: str) -> None:
    assert texts(f"{heading}\n\nNew: “Use uv.”.\n\n# Mine\n\nBought milk today.\n") == ["Bought milk today."]


def test_each_item_is_one_note_with_what_goes_on_below_it() -> None:
    log = "Intro words:\n- first thing\n  goes on\n  - nested thing\n\n  second paragraph\n3. third thing\n* last thing"
    assert texts(log) == [
        "Intro words:",
        *("first thing goes on", "nested thing", "second paragraph", "third thing", "last thing"),
    ]


@each(
    "log",
    [
        "",
        "# Only a heading here",
        "A heading below\n===============",
        "A heading below\n---",
        "**A heading in bold**",
        "- [ ] buy some milk",
        "- [x] bought some milk\n  and more milk\n\n  and even more",
        "* [] an empty box",
        "```\nsome code here\n```",
        "~~~~\nsome code here\n~~~\nstill code\n~~~~",
        "```\ncode to the very end",
        "    indented code here",
        "> somebody else said so",
        "| a table | of two |\n|---|---|\n| some more | of it |",
        "---\ntags: some words\n---",
        "<!-- a comment\nof two lines -->",
        "https://example.com/some/long-path",
        "- [the docs of it](https://example.com)",
        "[[a wiki link]] [[another one]]",
        "[docs]: https://example.com some title",
        "#tag #another-tag @someone",
        "* * *",
        "word",
        "12:30 2025-03-05 42",
        "<private>[private]</private>",
        "[redacted:github-token:3fa91c]",
    ],
)
def test_what_is_no_note(log: str) -> None:
    assert texts(log) == []
    assert texts(f"{log}\n\n# Next\n\nWhat follows stays.") == (
        [] if log.startswith("```\ncode") else ["What follows stays."]
    )


@each(
    "log",
    [
        "**Never push to main.**",
        "See https://example.com for more",
        "-5 degrees outside today",
        "总是使用pnpm",
        "#hashtag but with words",
        "- **uv** is what we take",
    ],
)
def test_what_is_a_note_all_the_same(log: str) -> None:
    assert len(texts(log)) == 1


def test_a_long_paragraph_is_its_sentences() -> None:
    sentence = "This sentence has about sixty characters, give or take five."
    log = "\n\n" + "\n".join([sentence] * (LONG // len(sentence) + 1))
    assert [line for line, _ in notes(log)] == list(range(3, 3 + LONG // len(sentence) + 1))
    assert set(texts(log)) == {sentence}


def test_our_blocks_are_no_notes_and_move_no_line() -> None:
    assert notes(f"Before it.\n\n{BLOCK}\nAfter it.\n") == [
        (1, "Before it."),
        (len(BLOCK.splitlines()) + 4, "After it."),
    ]


@each(
    "broken",
    [
        BLOCK.replace("Never share it.", "Never share it, I say."),  # edited by hand: still ours
        BLOCK.replace(CLOSING, ""),
        BLOCK.replace(OPENING, ""),
        BLOCK.replace(OPENING, "").replace(CLOSING, ""),  # our heading is still there
        BLOCK.replace(OPENING, "<!-- memory: reformatted -->"),
        BLOCK.replace("\n", "\r\n"),
        BLOCK + BLOCK,
    ],
)
def test_a_damaged_block_does_not_come_back_as_a_persons_words(broken: str) -> None:
    assert texts(f"# Day\n\n{broken}") == []
    assert texts(f"# Day\n\n{broken}\n# Mine\n\nAnother thing.") in ([], ["Another thing."])


def test_a_closing_fence_alone_takes_nothing_below_it() -> None:
    assert texts(f"{BLOCK}\nMy own words.\n\n{BLOCK.replace(OPENING, '')}\nMore of mine.") == ["More of mine."]


@given(st.text(alphabet="ab #-*[]x`~>|=\n\r\t.\ufeff<!/memory:", max_size=200))
@example("```\n~~~\n```\n- [ ]\n\n  x y")
def test_any_text_has_its_notes_where_they_stand(log: str) -> None:
    own = own_words(log)
    assert own.count("\n") == log.removeprefix("\ufeff").count("\n")
    lines = own.split("\n")
    for note in paragraphs(own):
        assert note.text.split("\n")[0].strip() in lines[note.line - 1]


@given(st.lists(st.sampled_from(["Use uv here.", "- an item of mine", "# Head", "", "> quote it"]), max_size=6))
def test_blocks_of_ours_anywhere_leave_the_notes_as_they_are(lines: list[str]) -> None:
    log = "\n".join([*lines, "", ""])
    assert texts(put_block(log, "reflection", OURS).text) == texts(log)
