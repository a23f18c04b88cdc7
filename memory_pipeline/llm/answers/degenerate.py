"""Unusable answers: refusals, loops, echoes of the transcript, copied placeholders, noise, and "nothing worth keeping".

Every function takes time linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter

from memory_pipeline.text.kinds import length_of
from memory_pipeline.text.sentences import clip

MAX_FACT = 1_000
"""Maximum characters of a fact; longer ones are cut."""
MIN_WORDS, MIN_LENGTH = 3, 12
"""Minimum words or characters of a fact; a Chinese character counts as three."""
SAID_AGAIN, REPEATED, STILL_REPEATS = 24, 3, 0.9
"""Minimum characters of a sentence that can count as repeated, the occurrence at which it does, and the minimum share
of repeated sentences after it: sentences also recur in traces and narratives of proper answers."""
REFUSAL_LOOKED_AT, NOTHING_LOOKED_AT = 400, 200
"""Characters that are searched for a refusal, which comes at the beginning, and maximum characters of an answer without
facts."""
ECHOES = 3
"""Minimum transcript lines of an echo, which must also be half of its lines."""

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_LETTER = re.compile(r"[^\W\d_]")
_PLAIN_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)`*]*(?=\s)|[。！？]")
_ECHO = re.compile(
    r"\s*\[#\d+(?: \d\d:\d\d| (?:early|later) in session)? (?:user|assistant|tool|injected)\b[^\]\n]{0,40}\]"
)
_UNIT = re.compile(r"(?:[^\n\".!?…。！？]|[.!?…](?!\s)){1,80}[.!?…。！？]*")
_MARKS = re.compile(r"\[[^\[\]\n]{0,40}\]|</?[A-Za-z][^<>\n]{0,80}>|\(\d\d:\d\d\)")
_CANNOT = r"(?:can(?:no|['’])?t|cannot|can not|unable|not able|won['’]?t|will not|not comfortable|must decline)"
_REFUSALS = re.compile(
    rf"""\W*(?:
      (?:i['’]?m|i\ am)\ (?:\w+\ )?sorry\b .{{0,200}}? \b{_CANNOT}\b
    | (?:sorry|unfortunately|i\ apologi[sz]e|my\ apologies)\b .{{0,200}}? \bi(?:['’]m|\ am)?\ {_CANNOT}\b
    | as\ an?\ (?:ai|artificial|large\ language|language\ model)\b
    | i(?:['’]m|\ am)?\ {_CANNOT}\b .{{0,60}}? \b(?:help|assist|comply|provide|process|fulfil|extract|do\ (?:that|this)|
        continue|answer|respond|summari[sz]e|complete|create|generate|analy[sz]e|engage|discuss|share|access|see)
    | i\ (?:don['’]t|do\ not)\ (?:see|have)\ (?:a|any|the|access\ to)\b .{{0,40}}? \b(?:transcript|conversation|session)
    | (?:please|could\ you)\ (?:provide|share|paste|send)\b .{{0,40}}? \b(?:transcript|conversation|session)
    | (?:es\ tut\ mir\ leid|leider\ kann\ ich|(?:je\ suis\ )?désolée?|lo\ siento|desculpe|sinto\ muito)\b
    | (?:很|非常|十分)?(?:抱歉|对不起|對不起|不好意思)|作为(?:一个|一名)?(?:ai|人工智能|语言模型)
    | 申し訳(?:ありません|ございません)|извините\b
    )""",
    re.I | re.X | re.S,
)
_KEEPING = (
    r"(?:worth|keep\w*|record\w*|remember\w*|not(?:e|ing|able|eworthy)|observ\w+|report\w*|sav(?:e|ing)|stor(?:e|ing)"
    r"|writ(?:e|ing)\ down|extract\w*|durable|retain\w*|memor\w+|found|here|relevant|significant)"
)
_NOTHING = re.compile(
    rf"""[\W_]*(?:
      (?:nothing|none|n/?a|null|nil|empty)
    | (?:there\ (?:is|was|are|were)\ |i\ (?:found|see|have)\ )?
      (?:nothing|(?:no|any)\ (?:\w+\ ){{0,3}}?(?:observations?|facts?|information|content|memor(?:y|ies)|segments?))
      (?:[^.!\n]{{0,40}}?\b{_KEEPING}\b[^.!\n]{{0,80}})?
    | keine\ (?:\w+\ ){{0,2}}?(?:beobachtungen|fakten)
    | nichts\b[^.!\n]{{0,40}}?\b(?:bewahr|behalt|merk|festh|wert|erwähn)[^.!\n]{{0,40}}
    | (?:rien|nada|niente)\b[^.!\n]{{0,40}}?\b(?:noter|retenir|garder|guardar|destacar|recordar|conservar|ricordare)
    | (?:没有|沒有|无|無)(?:什么|任何)?(?:值得|需要|可以?)?(?:要)?(?:记录|記錄|保留|保存|记住|记下|观察)[^。\n]{{0,10}}
    | 无|無|没有|沒有
    )[\W_]*""",
    re.I | re.X,
)
_PLACEHOLDERS = (
    *("up to 8 words", "1 to 3 sentences", "what was wanted, what was done", "the fact alone", "mark kind"),
    *("what the person is working on at the end", "what to do or say next when the work goes on"),
    *("numbers of earlier observations that", "only if earlier observations are shown", "what set it off"),
    "in shop-api the tests run with `make test-db`",
    "in shop-api sessions are kept in postgres instead of redis",
    "install packages in shop-api with uv, not with pip",
)
"""The first words of each placeholder and example in `prompts/`, in lower case, which weak models copy."""
_COPIED = re.compile("|".join(map(re.escape, _PLACEHOLDERS)), re.I)
_WHOLE = re.compile(r"\W*(?:the (?:fact|line)|what changed|in one sentence, what is new)\W*", re.I)
_LEADING_CHARACTERS = " \t\"'`*_<>([{…“„«"


def is_refusal(text: str) -> bool:
    """Whether the text begins with a refusal, in one of eight languages. Only its first 400 characters are read, so a
    refusal after a long preface counts as prose."""
    return bool(_REFUSALS.match(text.lstrip()[:REFUSAL_LOOKED_AT]))


def is_nothing(text: str) -> bool:
    """Whether the answer only says that nothing is worth keeping, in the usual wordings of English and some other
    languages, up to 200 characters."""
    words = " ".join(text[: NOTHING_LOOKED_AT + 1].split())
    return len(text.strip()) <= NOTHING_LOOKED_AT and bool(words) and bool(_NOTHING.fullmatch(words))


def is_noise_only(text: str) -> bool:
    """Whether the text consists only of tags, marks and digits."""
    return not _LETTER.search(without_tags(text))


def without_tags(text: str) -> str:
    """The text without tags of up to 200 characters."""
    return _TAG.sub("", text)


def is_echo_line(line: str) -> bool:
    """Whether the line is the header of a message in the transcript, like `[#12 14:03 user]`."""
    return bool(_ECHO.match(line))


def is_echo(text: str) -> bool:
    """Whether the text repeats the transcript: at least three message headers, which are half of the non-blank lines.
    Long messages hide an echo; then only the headers are removed."""
    lines = [line for line in text.split("\n") if line.strip()]
    heads = sum(map(is_echo_line, lines))
    return heads >= ECHOES and 2 * heads >= len(lines)


def is_too_little(text: str) -> bool:
    """Whether the text has too few words and characters for a fact."""
    if not _LETTER.search(text):
        return True
    return length_of(text) < MIN_LENGTH and len(_PLAIN_WORD.findall(text)) < MIN_WORDS


def shortened(text: str, limit: int = MAX_FACT) -> str:
    """The text, cut with "…" after its last complete sentence if it is longer than the limit; after a word if that
    sentence is longer than half of the limit."""
    if len(text) <= limit:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text[: limit - 1])]
    return f"{text[: ends[-1]]} …" if ends and ends[-1] > limit // 2 else clip(text[: 2 * limit], limit)


def before_repetition(text: str) -> tuple[str, bool]:
    """The text up to the point after which it only repeats itself, and whether there is such a point.

    At that point a sentence occurs for the third time; after it at least three sentences and nine tenths of all were
    said before, in any order and under other numbers. Of text without sentences, pieces of 80 characters are compared:
    those of a loop recur.
    """
    starts, seen = list[int](), list[int]()
    counts: Counter[str] = Counter()
    for found in _UNIT.finditer(text):
        said = " ".join(_PLAIN_WORD.findall(_MARKS.sub(" ", found[0]).casefold())).lstrip("0123456789 ")
        if length_of(said) >= SAID_AGAIN:
            counts[said] += 1
            starts.append(found.start())
            seen.append(counts[said])
    repeats = most = 0
    cut = None
    for left, (start, times) in enumerate(zip(reversed(starts), reversed(seen), strict=True), 1):
        repeats, most = repeats + (times > 1), max(most, times)
        if times > 1 and min(repeats, most) >= REPEATED and repeats >= STILL_REPEATS * left:
            cut = start
    return (text, False) if cut is None else (text[:cut], True)


def is_placeholder(text: str) -> bool:
    """Whether the text begins like a placeholder of a format or an example."""
    return text.lstrip(_LEADING_CHARACTERS).casefold().startswith(_PLACEHOLDERS) or bool(_WHOLE.fullmatch(text))


def copied(answer: str) -> int:
    """The number of placeholders and examples in a raw answer."""
    return sum(1 for _ in _COPIED.finditer(answer))
