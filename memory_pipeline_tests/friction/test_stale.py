"""A line is out of date where a user said later what takes its place."""

from memory_pipeline.friction.corrections import stale_lines, stale_pattern
from memory_pipeline.friction.rules import Rule
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.rows import day_after

LINE = Rule("MEMORY.md", "Build with Jenkins.", day_after(-20))
SAYS = "We build with Actions instead of Jenkins."


def test_only_words_that_take_its_place_after_it_was_written_end_a_line() -> None:
    cases = [
        ((SAYS,), 0, True),
        ((SAYS, "Builds moved from Jenkins to Actions."), 0, True),
        ((SAYS,), 25, False),  # the line is newer
        ((f"{SAYS[:-1]}?",), 0, False),
        (("Maybe we build with Actions instead of Jenkins.",), 0, False),
        (("Jenkins was switched off over the summer.",), 0, False),  # only a model tells
        (("Build it with Jenkins again.",), 0, False),
    ]
    wrong = []
    for texts, ago, is_over in cases:
        said = [event(text, f"s{number}", ago=ago - number) for number, text in enumerate(texts)]
        if stale_lines(said, [LINE]) != ({LINE: said} if is_over else {}):
            wrong.append((texts, ago))
    assert wrong == []


def test_it_is_a_fix_of_low_risk_in_memory_where_two_sessions_say_so() -> None:
    said = [event(SAYS, session) for session in ("s1", "s2")]
    pattern = stale_pattern(LINE, said)
    assert (pattern.kind, pattern.target_file, pattern.replaces) == ("stale_memory", "MEMORY.md", LINE.text)
    assert (pattern.adds, pattern.low_risk) == (SAYS, True)
    assert LINE.text in pattern.title
    assert not stale_pattern(LINE, said[:1]).low_risk
    assert not stale_pattern(Rule("/src/kiln/AGENTS.md", LINE.text, LINE.since), said).low_risk
