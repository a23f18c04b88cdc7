"""Answers as model families write them, each with all that must come out of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.observations.model.answer import MAX_FACTS, ParsedAnswer, ParsedSegment, covering, parse_answer
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.talking import parsed

WELL_FORMED = """\
<observations>
<segment from="#1" to="#14">
<title>Package manager of the parcel service</title>
<narrative>The person wanted npm gone. The agent moved the lockfile; tests pass.</narrative>
<facts>
* 🔴 rule (14:03) [#3 #7] Never use npm in parcels; use pnpm 9.1 instead.
* 🟡 progress (14:30) [#12] `make test` passes with 219 tests.
</facts>
</segment>
<segment from="#15" to="#40">
<title>Deploys</title>
<narrative>A date for deploys was set.</narrative>
<facts>
* 🟢 state_change (early in session) [#16] `config.yml` moved from a/ to b/.
</facts>
</segment>
</observations>
<current-task>Moving parcels to pnpm</current-task>
<suggested-response>Run the CI on the branch.</suggested-response>
<used>o2 o5</used>
<ended>o1</ended>
"""
NPM = ParsedFact("Never use npm in parcels; use pnpm 9.1 instead.", "high", "rule", "14:03", (3, 7))
TESTS = ParsedFact("`make test` passes with 219 tests.", "medium", "progress", "14:30", (12,))
MOVED = ParsedFact("`config.yml` moved from a/ to b/.", "low", "state_change", None, (16,))
FIRST = ParsedSegment(
    "Package manager of the parcel service",
    "The person wanted npm gone. The agent moved the lockfile; tests pass.",
    *(1, 14, (NPM, TESTS)),
)
SECOND = ParsedSegment("Deploys", "A date for deploys was set.", 15, 40, (MOVED,))
WELL_READ = ParsedAnswer(
    segments=(FIRST, SECOND),
    current_task="Moving parcels to pnpm",
    suggested_response="Run the CI on the branch.",
    used=("o2", "o5"),
    ended=("o1",),
    parsed=True,
    form="segments",
)


def flat(*facts: ParsedFact) -> tuple[ParsedSegment, ...]:
    return (ParsedSegment(None, None, None, None, facts),)


def fact(text: str, priority: str = "low", kind: str = "statement", clock: str | None = None, *refs: int) -> ParsedFact:
    return ParsedFact(text, priority, kind, clock, refs)


DEVIATIONS = {
    "as it was asked for": WELL_FORMED,
    "Gemini: in a fence": f"```xml\n{WELL_FORMED}```",
    "a fence that closes on the last line": f"```\n{WELL_FORMED.rstrip()}```\n",
    "GPT: with a preface": f"Here are the observations:\n\n{WELL_FORMED}\nLet me know!",
    "Claude: thinking": f"<thinking>\nThe person…\n* 🔴 draft\n</thinking>\n\n{WELL_FORMED}",
    "DeepSeek: a draft": f"<think>\n<observations>draft</observations>\n</think>\n{WELL_FORMED}",
    "Qwen: opened by the template": f"Okay, so <observations> it is.\n</think>\n\n{WELL_FORMED}",
    "reasoning on the same line": f"<reasoning>short</reasoning>{WELL_FORMED}",
    "Kimi": f"◁think▷hm◁/think▷{WELL_FORMED}",
    "gpt-oss: channels": "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>"
    + WELL_FORMED,
    "a token of the template at the end": f"{WELL_FORMED}<|im_end|>",
    "escaped as HTML": WELL_FORMED.replace("<", "&lt;").replace(">", "&gt;"),
    "line ends of Windows": WELL_FORMED.replace("\n", "\r\n"),
    "hidden characters": "\ufeff" + WELL_FORMED.replace("npm in", "n\u200bpm \u202ein"),
    "attributes": WELL_FORMED.replace('"#1"', "'1'").replace('"#14"', "#14").replace('"#15"', "15"),
    "one attribute": WELL_FORMED.replace('from="#1" to="#14"', 'messages="#1-#14"'),
    "upper case": WELL_FORMED.replace("segment", "SEGMENT").replace("facts", "Facts"),
    "underscore": WELL_FORMED.replace("current-task", "current_task"),
    "on one line": WELL_FORMED.replace("<facts>\n", "<facts>").replace("\n</facts>", "</facts>"),
    "marks of ASCII": WELL_FORMED.replace("🔴", "[!]").replace("🟡", "[?]").replace("🟢", "[i]"),
    "marks of words": WELL_FORMED.replace("🔴", "CRITICAL").replace("🟡", "IMPORTANT").replace("🟢", "NOTE"),
    "other order": WELL_FORMED.replace("rule (14:03) [#3 #7]", "[#3, #7] (2:03 PM) **Rule**:"),
}


def test_what_keeps_to_the_format_is_read_in_full() -> None:
    assert {name: read for name, answer in DEVIATIONS.items() if (read := parse_answer(answer)) != WELL_READ} == {}


def test_the_task_may_stand_before_the_observations() -> None:
    at = WELL_FORMED.index("<current-task>")
    assert parse_answer(WELL_FORMED[at:] + WELL_FORMED[:at]) == WELL_READ


def test_a_wrapped_line_of_the_format_goes_on() -> None:
    assert parse_answer(WELL_FORMED.replace("parcels; use", "parcels;\n  use")) == WELL_READ


@dataclass(frozen=True)
class Case:
    answer: str
    read: ParsedAnswer


CASES = {
    "Mastra's flat format": Case(
        """<observations>
Date: Mar 5, 2026

* 🔴 (14:30) User prefers direct answers
* 🟡 (14:33) Agent debugging auth issue
  * -> ran git status, found 3 modified files
  * -> viewed auth.ts:45-60, found missing null check

Date: 2026-03-06

* 🟢 (09:00) Coffee was mentioned twice
</observations>

<current-task>
Primary: auth issue
Secondary: none
</current-task>

<suggested-response>
Continue with auth.ts.
</suggested-response>""",
        ParsedAnswer(
            flat(
                fact("User prefers direct answers", "high", "statement", "14:30"),
                fact(
                    "Agent debugging auth issue; ran git status, found 3 modified files; "
                    "viewed auth.ts:45-60, found missing null check",
                    *("medium", "statement", "14:33"),
                ),
                fact("Coffee was mentioned twice", "low", "statement", "09:00"),
            ),
            current_task="Primary: auth issue Secondary: none",
            suggested_response="Continue with auth.ts.",
            parsed=True,
            form="flat",
        ),
    ),
    "small local model: a list without tags": Case(
        """Sure! Here is what I found:

- High: The user wants tabs, not spaces
- Medium: Tests are still red on CI
- The user greeted the agent

I hope this helps!""",
        ParsedAnswer(
            flat(
                fact("The user wants tabs, not spaces", "high"),
                fact("Tests are still red on CI", "medium"),
                fact("The user greeted the agent"),
            ),
            form="lines",
            problem="There are no tags; 1 of 3 facts have no priority.",
        ),
    ),
    "a heading for each segment": Case(
        """# Observations

### Segment 1: Setup of uv (#1–#9)
**Narrative:** They set up uv.
It works.

- **High** (09:15) [#3]: Use uv instead of pip
- [?] progress 09:20 - The lockfile is committed (#5, #7)

### Segment 2: Deploys
1. IMPORTANT: Deploys go out on Tuesdays""",
        ParsedAnswer(
            flat(
                fact("Use uv instead of pip", "high", "statement", "09:15", 3),
                fact("The lockfile is committed", "medium", "progress", "09:20", 5, 7),
                fact("Deploys go out on Tuesdays", "medium"),
            ),
            form="lines",
            problem="There are no tags.",
        ),
    ),
    "priorities as headings": Case(
        "<observations>\n## 🔴 High priority\n- Use uv instead of pip\n</observations>",
        ParsedAnswer(flat(fact("Use uv instead of pip")), form="flat", problem="1 of 1 facts have no priority."),
    ),
    "misspelt tags": Case(
        "<observations>\n<segement>\n<narative>They set up uv.</narative>\n* 🔴 Use uv, not pip\n</observations>",
        ParsedAnswer(flat(fact("Use uv, not pip", "high")), parsed=True, form="flat"),
    ),
    "facts as elements": Case(
        '<observations>\n<fact priority="high">Use uv instead of pip</fact>\n</observations>',
        ParsedAnswer(
            flat(fact('<fact priority="high">Use uv instead of pip</fact>')),
            form="raw",
            problem="The answer has no list.",
        ),
    ),
    "Chinese": Case(
        """<observations>
<segment from="#1" to="#9">
<title>部署流程</title>
<narrative>用户规定了部署前的步骤。</narrative>
<facts>
* 🔴 rule（10:02）【#4】部署前必须先跑测试。
* 🟡 决定 (10:05) [#6，#7] 用 pnpm 代替 npm
* 🟢 [#8] 好的
</facts>
</segment>
</observations>
<current-task>无</current-task>""",
        ParsedAnswer(
            (
                ParsedSegment(
                    *("部署流程", "用户规定了部署前的步骤。", 1, 9),
                    (
                        fact("部署前必须先跑测试。", "high", "rule", "10:02", 4),
                        fact("用 pnpm 代替 npm", "medium", "statement", "10:05", 6, 7),
                    ),
                ),
            ),
            parsed=True,
            form="segments",
        ),
    ),
    "cut by the output limit within a fact": Case(
        WELL_FORMED[: WELL_FORMED.index("219 tests")],
        ParsedAnswer(
            (replace(FIRST, facts=(NPM,)),),
            form="segments",
            problem="The answer ends within <facts>.",
        ),
    ),
    "cut where hardly anything is there of the last fact": Case(
        "<observations>\n* 🔴 use pnpm instead of npm\n* 🟡 (10:00) the t",
        ParsedAnswer(
            flat(fact("use pnpm instead of npm", "high")),
            form="flat",
            problem="The answer ends within <observations>.",
        ),
    ),
    "cut within a tag": Case(
        WELL_FORMED[: WELL_FORMED.index('"#40"')],
        ParsedAnswer((FIRST,), form="segments", problem="The answer ends within <observations>."),
    ),
    "cut where facts have no full stop anyway": Case(
        "<observations>\n* 🔴 use pnpm instead of npm\n* 🟡 the tests of the API are",
        ParsedAnswer(
            flat(fact("use pnpm instead of npm", "high")),
            form="flat",
            problem="The answer ends within <observations>.",
        ),
    ),
    "tags that were never closed, with a last line that is whole": Case(
        "<observations>\n* 🔴 use pnpm instead of npm\n* 🟡 the tests of the API are red\n",
        ParsedAnswer(
            flat(fact("use pnpm instead of npm", "high"), fact("the tests of the API are red", "medium")),
            form="flat",
            problem="The answer ends within <observations>.",
        ),
    ),
    "tags that were never closed, though it went on": Case(
        "<observations>\n<segment from='#1' to='#4'>\n<facts>\n* 🔴 rule (10:00) [#1] Never push to main.\n"
        "<segment from='#5' to='#9'>\n<facts>\n* 🟡 progress (10:05) [#6] CI is green again\n"
        "<current-task>CI</current-task>",
        ParsedAnswer(
            (
                ParsedSegment(None, None, 1, 4, (fact("Never push to main.", "high", "rule", "10:00", 1),)),
                ParsedSegment(None, None, 5, 9, (fact("CI is green again", "medium", "progress", "10:05", 6),)),
            ),
            "CI",
            form="segments",
            problem="The answer ends within <facts>.",
        ),
    ),
    "thinking that was never closed": Case(
        "<think>\nFirst I list\n* 🔴 a draft of it\n<observations>\n* 🔴 Never push to main.\n</observations>",
        ParsedAnswer(flat(fact("Never push to main.", "high")), form="flat", problem="The thinking is not closed."),
    ),
    "nothing but thinking": Case(
        "<think>\nFirst I list\n* 🔴 a draft of it",
        ParsedAnswer(problem="The answer is empty; the thinking is not closed."),
    ),
    "JSON": Case(
        'Here it is:\n```json\n{"observations": [{"priority": "high", "kind": "rule", "time": "14:03",'
        ' "places": [3, 7], "text": "Never use npm"},], "current_task": "pnpm", "used": ["o2"]}\n```',
        ParsedAnswer(
            flat(fact("Never use npm", "high", "rule", "14:03", 3, 7)),
            current_task="pnpm",
            used=("o2",),
            parsed=True,
            form="flat",
        ),
    ),
    "JSON with segments": Case(
        '{"segments": [{"title": "Setup", "narrative": "It works.", "from": 1, "to": "#9", "facts":'
        ' ["🔴 rule (14:03) [#3] Never use npm"]}]}',
        ParsedAnswer(
            (ParsedSegment("Setup", "It works.", 1, 9, (fact("Never use npm", "high", "rule", "14:03", 3),)),),
            parsed=True,
            form="segments",
        ),
    ),
    "JSON that was cut": Case(
        '{"observations": [{"priority": "high", "text": "Never use npm"}, {"priority": "low", "text": "Use',
        ParsedAnswer(flat(fact("Never use npm", "high")), form="flat", problem="The JSON is truncated or damaged."),
    ),
    "prose": Case(
        "Here is a summary of the session.\n\n"
        "The user decided to use Postgres for the parcels. SQLite was too slow.\n\n"
        "The deploy goes through `make ship`.\n\nLet me know if you need more.",
        ParsedAnswer(
            flat(
                fact("The user decided to use Postgres for the parcels. SQLite was too slow."),
                fact("The deploy goes through `make ship`."),
            ),
            form="raw",
            problem="The answer has no list.",
        ),
    ),
    "lines without bullets": Case(
        "<observations>\nThe user wants tabs.\n\nThe CI is red since Monday.\n</observations>",
        ParsedAnswer(
            flat(fact("The user wants tabs."), fact("The CI is red since Monday.")),
            form="raw",
            problem="The answer has no list.",
        ),
    ),
    "facts beside empty tags": Case(
        "<observations>\n</observations>\n* 🔴 (10:00) Never push to main",
        ParsedAnswer(
            flat(fact("Never push to main", "high", "statement", "10:00")),
            form="lines",
            problem="The facts are outside the tags.",
        ),
    ),
    "a segment without facts": Case(
        "<observations><segment from='#1' to='#4'><title>Chat</title><narrative>They said hello.</narrative>"
        "<facts></facts></segment></observations>",
        ParsedAnswer((ParsedSegment("Chat", "They said hello.", 1, 4, ()),), parsed=True, form="segments"),
    ),
    "nothing, with a task": Case(
        "<observations>nothing worth keeping</observations>\n<current-task>Fixing CI</current-task>",
        ParsedAnswer((), "Fixing CI", parsed=True, form="nothing"),
    ),
}


def test_an_answer_of_another_form_gives_what_is_in_it() -> None:
    assert {name: read for name, case in CASES.items() if (read := parse_answer(case.answer)) != case.read} == {}


NOTHING = (
    "<observations></observations>",
    "<observations/>",
    "<observations>\n\n</observations>",
    "<observations>nothing worth keeping</observations>",
    "<observations>\n* 🟢 Nothing worth keeping.\n</observations>",
    "<observations>\n<segment from='#1' to='#9'>\n<facts>\nNone\n</facts>\n</segment>\n</observations>",
    "<observations>None.</observations>",
    "Nothing worth keeping.",
    "There is nothing new worth recording in this part.",
    "No observations.",
    "<observations>没有值得记录的内容</observations>",
    "<observations>Nichts Bewahrenswertes.</observations>",
    '{"observations": []}',
)


def test_nothing_is_an_answer() -> None:
    valid = ParsedAnswer(parsed=True, form="nothing")
    assert {answer: read for answer in NOTHING if (read := parse_answer(answer)) != valid} == {}


def test_facts_between_segments_have_a_segment_of_their_own() -> None:
    answer = WELL_FORMED.replace("</segment>\n</obs", "</segment>\n* 🔴 Never push to main\n</obs")
    last = ParsedSegment(None, None, None, None, (fact("Never push to main", "high"),))
    assert parse_answer(answer) == replace(WELL_READ, segments=(FIRST, SECOND, last))


def test_all_before_the_end_of_thinking_is_thinking() -> None:
    draft = "* 🔴 Push it to staging\n<think>hm</think>\n* 🔴 Push it to production\n</think>\n"
    assert parse_answer(f"{draft}* 🔴 Never push to main").segments == flat(fact("Never push to main", "high"))
    told = "<observations>\n* 🔴 The parser drops all before </think>\n* 🟡 Tests are red</observations>"
    assert [f.text for f in parse_answer(told).segments[0].facts] == [
        "The parser drops all before </think>",
        "Tests are red",
    ]


def test_inline_tags_are_words_of_their_sentence() -> None:
    answer = WELL_FORMED.replace("219 tests.", "219 tests; `</facts>` and <title> are shown.")
    first = parse_answer(answer).segments[0].facts[1]
    assert first.text == "`make test` passes with 219 tests; `</facts>` and <title> are shown."
    assert parse_answer(answer).parsed


def test_a_fact_is_kept_once_however_it_is_punctuated() -> None:
    answer = "<observations>\n* 🔴 Never push to main\n* 🟡 never push, to main!\n* 🟢 Push to main\n</observations>"
    assert parse_answer(answer).segments == flat(fact("Never push to main", "high"), fact("Push to main"))


def test_a_line_of_the_instructions_is_no_fact() -> None:
    template = """<observations>
<segment from="#FIRST" to="#LAST">
<title>up to 8 words</title>
<narrative>1 to 3 sentences: what was wanted, what was done, how it ended.</narrative>
<facts>
* MARK kind (HH:MM) [#NUMBER #NUMBER] the fact
</facts>
</segment>
</observations>
<current-task>what the person is working on at the end, one line</current-task>
<used>numbers of earlier observations that this part builds on, like o2 o9; empty if there are none</used>
"""
    assert parse_answer(template).used == ()
    assert parse_answer(template + WELL_FORMED) == WELL_READ


def test_there_is_an_end_to_facts() -> None:
    names = ["".join(letters) for letters in product("abcdefg", repeat=3)]
    lines = "".join(f"* 🔴 rule (10:00) [#{i}] The module {name} must stay\n" for i, name in enumerate(names))
    answer = parse_answer(f"<observations>\n{lines}</observations>")
    assert len(answer.segments[0].facts) == MAX_FACTS


def test_segments_need_no_tags_of_their_own() -> None:
    answer = "<segment from='#1' to='#2'><narrative>One.</narrative>\n* 🔴 Never push to main\n</segment>"
    read = parse_answer(answer)
    assert read.segments == (ParsedSegment(None, "One.", 1, 2, (fact("Never push to main", "high"),)),)
    assert (read.parsed, read.problem) == (False, "There is no <observations>.")


def topic(title: str, first: int | None = None, last: int | None = None, *refs: int) -> ParsedSegment:
    """A segment with a fact for each of these messages."""
    facts = tuple(parsed(f"{title} {ref}", refs=[ref]) for ref in refs)
    return ParsedSegment(title, f"About {title}.", first, last, facts)


def places(whole: range, *segments: ParsedSegment) -> list[tuple[str | None, int, int]]:
    """Title, first and last number of each."""
    found = covering(ParsedAnswer(segments, parsed=True), whole)
    return [(segment.title, at.start + 1, at.stop) for segment, at in found]


WHOLE = range(10)


@each(
    ("segments", "expected"),
    [
        ([topic("a", 1, 4), topic("b", 5, 10)], [("a", 1, 4), ("b", 5, 10)]),
        ([topic("a", 1, 10)], [("a", 1, 10)]),
        ([topic("a", 3, 4), topic("b", 7, 8)], [("a", 1, 6), ("b", 7, 10)]),  # gaps
        ([topic("a", 1, 7), topic("b", 5, 10)], [("a", 1, 4), ("b", 5, 10)]),  # overlaps
        ([topic("b", 5, 10), topic("a", 1, 4)], [("a", 1, 4), ("b", 5, 10)]),  # another order
        ([topic("a", 1, 4), topic("b", 99, 120)], [("a", 1, 4), ("b", 5, 10)]),  # numbers that were not shown
        ([topic("a", 1), topic("b", None, None, 8, 6)], [("a", 1, 5), ("b", 6, 10)]),  # the first that its facts name
        ([topic("a", 1), topic("b", 42, None, 6)], [("a", 1, 5), ("b", 6, 10)]),
        ([topic("a", 1, 4), topic("b")], [("a", 1, 4), ("b", 5, 10)]),  # after the one before it
        ([topic("a", None, 4), topic("b", None, 7), topic("c")], [("a", 1, 4), ("b", 5, 7), ("c", 8, 10)]),
        ([topic("a", 1, 10), topic("b")], [("a", 1, 10)]),
        ([topic("a"), topic("b")], [("a", 1, 10)]),  # nothing is known of where they part
        ([topic("a", 0, 4), topic("b", -3)], [("a", 1, 4), ("b", 5, 10)]),
    ],
)
def test_where_segments_stand(segments: list[ParsedSegment], expected: list[tuple[str, int, int]]) -> None:
    assert places(WHOLE, *segments) == expected


def test_an_answer_without_segments_has_an_empty_one() -> None:
    ((segment, at),) = covering(ParsedAnswer(), WHOLE)
    assert (segment.title, segment.facts, at) == (None, (), WHOLE)


def test_numbers_are_those_of_the_window_also_in_a_later_part() -> None:
    assert places(range(20, 30), topic("a", 21, 24), topic("b", 25, 30)) == [("a", 21, 24), ("b", 25, 30)]
    assert places(range(20, 30), topic("a", 1, 4), topic("b", 25, 30)) == [("a", 21, 24), ("b", 25, 30)]


def test_two_that_begin_together_are_one() -> None:
    found = covering(ParsedAnswer((topic("a", 1, 3, 2), topic("b", 1, 9, 4)), parsed=True), WHOLE)
    ((segment, at),) = found
    assert (segment.title, segment.narrative, at) == ("a", "About a. About b.", WHOLE)
    assert [fact.text for fact in segment.facts] == ["a 2", "b 4"]


NUMBER = st.none() | st.integers(-2, 45)
SEGMENT = st.builds(
    lambda title, first, last, refs: topic(title, first, last, *refs),
    st.sampled_from("abc"),
    NUMBER,
    NUMBER,
    st.lists(st.integers(-2, 45), max_size=3),
)


@given(st.lists(SEGMENT, max_size=8), st.integers(0, 30), st.integers(1, 12))
def test_every_message_is_in_one_segment_and_no_fact_is_lost(
    segments: list[ParsedSegment], start: int, length: int
) -> None:
    whole = range(start, start + length)
    found = covering(ParsedAnswer(tuple(segments), parsed=True), whole)
    assert [i for _, at in found for i in at] == list(whole)
    assert all(len(at) for _, at in found)
    texts = sorted(fact.text for segment in segments for fact in segment.facts)
    assert sorted(fact.text for segment, _ in found for fact in segment.facts) == texts
