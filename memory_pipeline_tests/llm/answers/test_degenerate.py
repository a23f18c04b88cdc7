"""Answers that are none, and inputs made to take time: nothing here may take more than a few seconds."""

from itertools import product
from random import Random

from memory_pipeline.llm.answers.cleaning import cleaned
from memory_pipeline.llm.answers.degenerate import (
    MAX_FACT,
    before_repetition,
    is_echo,
    is_noise_only,
    is_nothing,
    is_refusal,
    is_too_little,
    shortened,
)
from memory_pipeline.observations.model.answer import ParsedAnswer, parse_answer
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import grows_evenly

RULE = "* 🔴 rule (10:00) [#1] Never push to main.\n"
RAN = "* 🟡 progress (14:31) [#5] The agent ran the tests again and they failed.\n"


def facts_of(answer: ParsedAnswer) -> list[str]:
    return [fact.text for segment in answer.segments for fact in segment.facts]


REFUSALS = [
    "I'm sorry, but I can't help with that request.",
    "I’m really sorry, but I cannot process this transcript.",
    "Sorry, I am unable to assist with that.",
    "As an AI language model, I do not have access to your files.",
    "I cannot provide a summary of this conversation as it contains sensitive data.",
    "I won't continue with this.",
    "I don't see any transcript in your message. Could you paste it?",
    "Please provide the transcript that you would like me to read.",
    "**I'm sorry, I can't help with that.**\n\nHere is what I can do:\n- Summarise the news\n- Write a poem",
    "<observations>\nI'm sorry, but I can't help with that.\n</observations>",
    "<think>Is this allowed?</think>I'm sorry, but I can't do that.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Je suis désolé, mais je ne peux pas répondre à cette demande.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "很抱歉，我无法处理这个请求。",
    "申し訳ありませんが、そのご要望にはお答えできません。",
]


def test_a_refusal_gives_no_facts() -> None:
    expected = ParsedAnswer(form="refusal", problem="The model declines to answer.")
    assert {text: read for text in REFUSALS if (read := parse_answer(text)) != expected} == {}


NO_REFUSALS = [
    "The user is sorry that he can't come on Monday.",
    "I can see that the deploy goes through make.",
    "The person said: I'm sorry, I can't use npm.",
    "Sorry for the mess: the config moved to b/.",
    "",
]


def test_words_that_sound_like_a_refusal_are_none() -> None:
    assert [text for text in NO_REFUSALS if is_refusal(text)] == []


def test_facts_outweigh_an_apology() -> None:
    answer = parse_answer(f"I'm sorry, I can't see message 3, but:\n{RULE}")
    assert (answer.form, facts_of(answer)) == ("lines", ["Never push to main."])


EMPTY = ["", "  \n\t\n", "\u200b\ufeff", "```\n```", "<think></think>", "\x00\x1b[0m"]


def test_empty_answers_are_told() -> None:
    for text in EMPTY:
        answer = parse_answer(text)
        assert (answer.form in ("empty", "degenerate"), answer.parsed, answer.segments) == (True, False, ()), text
        assert answer.problem, text


ABOUT_NOTHING = [
    "Nothing in the repository uses npm.",
    "No new information is written to disk.",
    "Nothing may be pushed to main before the tests have passed.",
    "None of the tests fail.",
    "Nichts darf auf main gepusht werden.",
    "无论如何都要先跑测试",
    "nothing worth keeping " * 20,
    "",
]


def test_a_fact_about_nothing_is_a_fact() -> None:
    assert [text for text in ABOUT_NOTHING if is_nothing(text)] == []


@each("times", [8, 100, 5_000])
def test_a_line_again_and_again_is_kept_once(times: int) -> None:
    text = f"<observations>\n{RULE}{RAN * times}"
    assert before_repetition(text) == (f"<observations>\n{RULE}{RAN}", True)
    answer = parse_answer(text)
    assert (answer.form, answer.parsed) == ("degenerate", False)
    assert answer.problem == "The answer repeats itself."
    assert facts_of(answer) == ["Never push to main.", "The agent ran the tests again and they failed."]


def test_a_loop_that_counts_on_is_seen() -> None:
    lines = [f"* 🟡 progress (14:{i:02}) [#{i}] The agent ran the tests again.\n" for i in range(50)]
    assert before_repetition("".join([RULE, *lines])) == (RULE + lines[0], True)


def test_a_loop_within_a_line_is_seen() -> None:
    for text in ("- The deploy is slow because " + "the cache is cold and " * 200, "先跑测试再部署，" * 500):
        kept, has_loops = before_repetition(text)
        assert has_loops and len(kept) < 1_000


ALIKE = [
    "",
    "no no no no no",
    RAN * 3,
    "".join(f"* 🟡 (14:0{i}) [#{i}] Story {i} passed\n" for i in range(9)),
    "".join(f"<segment from='#{i}'>\n<facts>\n</facts>\n</segment>\n" for i in range(9)),
    "-" * 200 + "\n" + "=" * 200,
    "".join(f"* 🔴 rule (10:00) [#1] The module {''.join(m)} must stay\n" for m in product("abcdef", repeat=3)),
]


def test_what_is_only_alike_is_no_loop() -> None:
    assert [text[:60] for text in ALIKE if before_repetition(text) != (text, False)] == []


NOISE = ["<segment><facts></facts></segment>", "<observations>", "* * *", "🔴🟡🟢", "12:30 [#3]", "{}"]


def test_noise_is_degenerate() -> None:
    for text in NOISE:
        answer = parse_answer(f"{text}!")
        assert is_noise_only(text), text
        assert (answer.form, answer.parsed, answer.segments) == ("degenerate", False, ()), text


ECHO = "[#12 14:03 user] never push to main\n[#13 14:04 assistant] All right.\n- I will not\n[#14 14:04 tool] ok\n"


ECHOES = [ECHO, f"<observations>\n{ECHO}</observations>", f"```\n{ECHO}```"]


def test_the_transcript_again_is_no_answer() -> None:
    expected = ParsedAnswer(form="degenerate", problem="The answer repeats the transcript.")
    assert {text: read for text in ECHOES if (read := parse_answer(text)) != expected} == {}


def test_an_answer_below_a_piece_of_the_transcript_is_read() -> None:
    answer = parse_answer(f"{ECHO}\n<observations>\n{RULE}</observations>")
    assert (answer.form, answer.parsed, facts_of(answer)) == ("flat", True, ["Never push to main."])
    assert facts_of(parse_answer(f"{ECHO}\n{RULE}")) == ["I will not", "Never push to main."]
    assert not is_echo("[#12 14:03 user] once\nand that is it\nreally")
    assert not is_echo(ECHO + "one line of an answer\n" * 4)


def test_a_long_fact_ends_with_a_sentence() -> None:
    sentence = "The deploy of the parcel service goes through make ship. "
    cut = shortened(sentence * 40)
    assert cut == f"{(sentence * 17).strip()} …"
    assert shortened("word " * 900).endswith("word…")
    assert max(len(shortened("x" * n)) for n in (999, 1000, 1001, 5000)) == MAX_FACT
    assert shortened("测试。" * 900).endswith("测试。 …")
    assert facts_of(parse_answer(f"<observations>\n* 🔴 {sentence * 3}{'but ' * 9_000}</observations>"))


LITTLE = {
    "use uv": True,
    "a b c": False,
    "configuration": False,
    "部署前测试": False,
    "部署前": True,
    "1 2 3 4": True,
}


def test_few_words_are_too_little() -> None:
    assert {text: is_too_little(text) for text in LITTLE} == LITTLE


def test_nothing_hides_in_an_answer() -> None:
    hidden = "a\x00b\x1b[31mc\u200bd\u202ee\ufefff\U000e0041g\u00adh\u2028i\ud800j"
    assert cleaned(hidden) == "abcdefgh\ni\ufffdj"
    assert cleaned("می\u200cخواهم") == "می\u200cخواهم"  # without it the word is misspelt


def _words(count: int) -> str:
    random = Random(7)
    return " ".join(f"w{random.randrange(5000)}x" for _ in range(count))


HOSTILE = {
    "segments": lambda: "<segment>" * 50_000,
    "bullets": lambda: "* " * 200_000,
    "parentheses": lambda: "(" * 500_000,
    "brackets": lambda: "[" * 1_000_000,
    "angles": lambda: "<" * 1_000_000,
    "closing": lambda: "</" * 400_000,
    "thinking": lambda: "<think>" * 100_000,
    "thought": lambda: "<observations>" + "</think>\n" * 100_000,
    "thinking in a line": lambda: "<observations> a " + "x <think> " * 80_000,
    "objects": lambda: '{"a":' * 150_000,
    "cut JSON": lambda: '{"observations": [' + '{"text":"abc def ghi"},' * 40_000,
    "quotes": lambda: '"' * 1_000_000,
    "backticks": lambda: "`" * 1_000_000,
    "bold": lambda: "**a" * 300_000,
    "tags in a line": lambda: "<observations>\n* 🔴 " + "a <title> " * 90_000,
    "facts in a line": lambda: "<facts>" + "".join(f" * 🔴 {word} it is" for word in _words(30_000).split()),
    "attributes": lambda: "<segment " + 'a="' * 300_000,
    "unknown tags": lambda: "".join(f"<{word}>" for word in _words(100_000).split()),
    "a word": lambda: "a" * 1_000_000,
    "spaces": lambda: "* 🔴 a" + " " * 1_000_000 + "b",
    "an indent": lambda: " " * 900_000 + "x",
    "spaces behind an entity": lambda: "&lt;" + " " * 900_000 + "x",
    "spaces in a label": lambda: "Title" + " " * 900_000 + ": x",
    "spaces in a heading": lambda: "# Segment" + " " * 900_000 + "x",
    "spaces in a tag": lambda: "<segment" + " " * 1_000_000 + ">",
    "line ends": lambda: "\r" * 1_000_000,
    "escapes": lambda: "\x1b[" * 500_000,
    "entities": lambda: "* 🔴 " + "&amp;" * 150_000,
    "words": lambda: _words(150_000),
    "sub-bullets": lambda: "* 🔴 start of it\n" + "".join(f"  - {word} it\n" for word in _words(40_000).split()),
    "headings": lambda: "".join(f"# {word} it is\n" for word in _words(30_000).split()),
    "lines": lambda: "".join(f"* 🔴 rule (10:00) [#1] {word} it is\n" for word in _words(20_000).split()),
    "numbers": lambda: "* 🔴 x " + "[#1]" * 150_000,
    "a long loop": lambda: RAN * 70_000,
}


@each("name", HOSTILE)
def test_no_answer_takes_long(name: str) -> None:
    text = HOSTILE[name]()

    def parsed(size: int) -> ParsedAnswer:
        return parse_answer(text[: size - 20] + text[-20:])

    grows_evenly(parsed, len(text) // 80)
    answer = parsed(len(text) // 10)
    assert not answer.parsed
    assert len(facts_of(answer)) <= 200
