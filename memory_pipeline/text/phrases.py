"""Phrases of a language that show the role of a sentence, read from a file, and the patterns compiled from them.

A file has a table for each role of `Cues`, with lists of phrases by position:

    words   anywhere in the sentence
    begins  at the beginning of the sentence
    opens   at its beginning, after any of the language's `fillers` ("ok, now please ...")
    clause  at the beginning of a part of it
    closes  at the end of a part of it
    ends    at its end
    short   at its beginning, with hardly anything after it
    only    the sentence has nothing but these
    except  no occurrence of any of these: "never mind"

In a phrase `*` is any ending of a word, `_` any word, `{do}` a word of the language's list `do` and `…` a few words;
`(a/b)` is either, `[a/b]` either or nothing, and a comma may occur at any space. In the roles `gives_up` and `refuses`,
`X` stands for what is given up or refused. Letter case and the form of the apostrophe do not matter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

SPACED_LANGUAGES = ("english", "german", "french", "spanish")
"""Names of the files of languages with spaces between words."""
LANGUAGES = (*SPACED_LANGUAGES, "japanese", "chinese")
"""Names of the files."""
WORDS = "words"
"""The file with the lists of single words, a table for each language. Every command reads it, so it is small."""
NEVER = re.compile(r"(?!)")
MAX_BETWEEN = 60
"""Maximum characters that `…` matches."""
MAX_BEHIND = 40
"""Maximum characters after a phrase of `short`."""
_SIGNS = {
    "(": "(?:",
    ")": ")",
    "[": "(?:",
    "]": ")?",
    "/": "|",
    "*": r"\w*",
    "_": r"[^\s,;:!?]+",
    " ": r",?\s+",
    "'": "['’]",
}
_LIST = re.compile(r"\{(\w+)\}")
_NO_LETTER_BEFORE, _NO_LETTER_AFTER = r"(?<!\w)", r"(?!\w)"
_FALLBACK_ROLES = {
    "guess": "doubt",
    "request": "momentary",
    "rejection": "correction",
    "lasting": "rule",
    "sets_rule": "rule",
    "sets_preference": "preference",
    "sets_decision": "decided",
    "passing": "for_now",
    "success": "progress",
}
"""Roles for which a language without words of its own uses those of another role."""
_THING = {"gives_up": "old", "refuses": "words"}
_PLACES = {
    "words": "{start}@{found}{word_end}",
    "begins": r"^\W*@{found}{word_end}",
    "opens": r"^\W*(?:{fillers}[,.!:，。]?{space})*@{found}{word_end}",
    "clause": r"(?:^|[.,;:!?，。；：]\s*)(?:{fillers}{space})*@{found}{word_end}",
    "closes": r"{start}@{found}(?=[.,;:!?。，；：、！](?!\w)|\s[-–—(]|\s*$)",
    "ends": r"@{found}[。．.!！\s]*$",
    "short": r"^\W*@{found}{word_end}[^.。]{{0,{max_behind}}}[.!,。！]?\s*$",
    "only": r"^(?:@{found}|\d|[abc]|\W)+$",
}
_EXCEPT = "except"


class Cues:
    """The cues of one language; a role without words never matches. A pattern is compiled on first use: compiling all
    of a language takes .2 s, and most commands need one or two."""

    rule: re.Pattern[str]
    """A statement of what applies from now on."""
    preference: re.Pattern[str]
    decided: re.Pattern[str]
    """An explicit report of a decision."""
    decision: re.Pattern[str]
    obligation: re.Pattern[str]
    correction: re.Pattern[str]
    """A statement that something was wrong, usually the beginning of the sentence."""
    contrast: re.Pattern[str]
    """A contrast of two things: a correction, unless it is a rule or a decision."""
    asking: re.Pattern[str]
    """A question without a question mark."""
    correcting_question: re.Pattern[str]
    open: re.Pattern[str]
    """Statements about something unknown."""
    momentary: re.Pattern[str]
    """An instruction that no longer matters once it is done."""
    request: re.Pattern[str]
    """Narrower than `momentary`: a line that begins with "use" or "run" may be a rule."""
    accepting: re.Pattern[str]
    """Text that begins with consent."""
    acceptance: re.Pattern[str]
    """Text that is only consent, thanks or "go on"."""
    root_cause: re.Pattern[str]
    state_change: re.Pattern[str]
    convention: re.Pattern[str]
    progress: re.Pattern[str]
    success: re.Pattern[str]
    """A report that something works or is done."""
    narrates: re.Pattern[str]
    """A report of what happened, or of who wanted it."""
    reason: re.Pattern[str]
    plan: re.Pattern[str]
    """The model's announcement of its next step."""
    offer: re.Pattern[str]
    proposal: re.Pattern[str]
    """The model's suggestion, which was not acted on yet."""
    praise: re.Pattern[str]
    verdict: re.Pattern[str]
    """The model's judgement of its own work, which is no fact about the work."""
    hedge: re.Pattern[str]
    """The model's doubt."""
    doubt: re.Pattern[str]
    """A user's doubt; "I think" is only polite."""
    guess: re.Pattern[str]
    supposes: re.Pattern[str]
    """A line that considers a possibility."""
    for_now: re.Pattern[str]
    """Words that restrict a rule to this moment."""
    later: re.Pattern[str]
    complaint: re.Pattern[str]
    """A remark about what happened, or about what does not matter: nothing normative."""
    rejection: re.Pattern[str]
    """A reply that rejects what the model said."""
    retraction: re.Pattern[str]
    """The speaker's admission of a mistake."""
    sets_rule: re.Pattern[str]
    """A user explicitly states a rule; narrower than `rule`."""
    sets_preference: re.Pattern[str]
    sets_decision: re.Pattern[str]
    remembers: re.Pattern[str]
    """A user's request to remember something."""
    prohibits: re.Pattern[str]
    """A user forbids something, for good or for the task at hand."""
    general: re.Pattern[str]
    """Words that make a prohibition hold beyond the task at hand."""
    unsettled: re.Pattern[str]
    """Words that keep a sentence from being an explicit statement: about one case, a past one or a possible one."""
    subordinate: re.Pattern[str]
    """The end of the words before a subordinate clause: "what", "the files that"."""
    premise: re.Pattern[str]
    """The beginning of a supposition; a question after it is about that case."""
    tag: re.Pattern[str]
    """Words with a question mark after a statement, which ask nothing: "..., ok?"."""
    casts: re.Pattern[str]
    """The beginning of a prompt that casts the model in a role: "You are a senior ..."."""
    withdraws: re.Pattern[str]
    """Words anywhere in a sentence that show it as hearsay or as untrue: "apparently", "or so I thought"."""
    qualifies: re.Pattern[str]
    """The beginning of a sentence that qualifies the one before: "except ...", "then ..."."""
    amends: re.Pattern[str]
    """A user announces a change of something settled; the next sentence says which."""
    alternatives: re.Pattern[str]
    """Words between the alternatives of a question."""
    picking: re.Pattern[str]
    """Words around the alternative that an answer picks: "please", "I'd go with"."""
    ordinal: re.Pattern[str]
    """An alternative of a question by its position: "the second one"."""
    chooses: re.Pattern[str]
    """A question that offers alternatives, or asks which one."""
    takes_back: re.Pattern[str]
    """A user retracts what they have just said."""
    changes_mind: re.Pattern[str]
    """A user replaces an earlier decision."""
    wishes: re.Pattern[str]
    turns: re.Pattern[str]
    """The speaker departs from earlier practice."""
    lasting: re.Pattern[str]
    """Words that make a wish apply from now on, so that a momentary request does not end it."""
    passing: re.Pattern[str]
    """A clause about the moment, or under a condition."""
    again: re.Pattern[str]
    """A remark that it was said before."""
    interjection: re.Pattern[str]
    """The beginning of a repeated correction, without what was wanted."""
    thanks: re.Pattern[str]
    finished: re.Pattern[str]
    """A report that a piece of work is done."""
    next_thing: re.Pattern[str]
    """A user turns to the next task: "now let's ..."."""
    orders: re.Pattern[str]
    """An instruction to somebody."""
    gives_up: tuple[re.Pattern[str], ...]
    """Something that is no longer used, as the group `old`."""
    refuses: tuple[re.Pattern[str], ...]
    """Something that is refused, as the group `words`."""

    def __init__(self, language: _Language, roles: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        self._language, self._roles = language, roles

    def __getattr__(self, role: str) -> Any:
        """The compiled pattern of a role, which is an attribute of its own from then on."""
        if role not in Cues.__annotations__:
            raise AttributeError(role)
        places = self._roles.get(role)
        if places is None and role in _FALLBACK_ROLES:
            found = getattr(self, _FALLBACK_ROLES[role])
        else:
            found = self._language.role(role, places or {})
        setattr(self, role, found)
        return found


@cache
def load(name: str) -> Cues:
    """The cues of the language with this file; raises `ValueError` for an unknown role or place."""
    data = dict(_read(name))
    language = _Language(data.pop("spaced", True), data.pop("fillers", ()), _read(WORDS).get(name, {}))
    if unknown := data.keys() - Cues.__annotations__.keys():
        raise ValueError(f"{name}.toml: no such role: {', '.join(sorted(unknown))}")
    if unknown := {place for places in data.values() for place in places} - {*_PLACES, _EXCEPT}:
        raise ValueError(f"{name}.toml: no such place in a sentence: {', '.join(sorted(unknown))}")
    return Cues(language, data)


def word_list(name: str, *languages: str) -> frozenset[str]:
    """The single words of a list of these languages, or of all."""
    return frozenset(word for language in languages or LANGUAGES for word in _read(WORDS)[language].get(name, ()))


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(f"{__package__}.languages").joinpath(f"{name}.toml").read_text("utf-8"))


@dataclass(frozen=True)
class _Language:
    spaced: bool
    """Whether there are spaces between words."""
    fillers: Sequence[str]
    lists: Mapping[str, Sequence[str]]
    """Lists of words that a phrase can name, such as `do`, the imperative verbs of instructions to an agent."""

    def role(self, role: str, places: Mapping[str, Sequence[str]]) -> Any:
        if group := _THING.get(role):
            return tuple(self._with_thing(phrase, group) for phrase in places.get("words", ()))
        exceptions = self._any(places.get(_EXCEPT, ()))
        parts = [self._place(place, phrases) for place, phrases in places.items() if phrases and place != _EXCEPT]
        lookahead = f"(?!{exceptions}{self._word_end})" if exceptions else ""
        return re.compile("|".join(part.replace("@", lookahead, 1) for part in parts), re.I) if parts else NEVER

    def _place(self, place: str, phrases: Sequence[str]) -> str:
        """The pattern of a position; `@` marks where an exception must not begin."""
        return _PLACES[place].format(
            found=self._any(phrases),
            fillers=self._any(self.fillers),
            start=r"(?:(?<!\w)|(?=\W))" if self.spaced else "",  # a phrase may begin with a comma
            word_end=self._word_end,
            space=self._space,
            max_behind=MAX_BEHIND,
        )

    def _with_thing(self, phrase: str, group: str) -> re.Pattern[str]:
        """The pattern of a phrase with `X`, which extends to the end of the clause or to the rest of the phrase."""
        before, _, after = phrase.partition("X")
        stop = r"[^,.;:!()，。；、]" if group == "words" else r"[^，。；、]" if not self.spaced else "."
        thing = rf"(?P<{group}>{stop}+{'?' if after else ''})"
        start = _NO_LETTER_BEFORE if self.spaced and before[:1] != "," else ""
        pattern = f"{start}{self._pattern(before)}{thing}{self._pattern(after)}"
        return re.compile(pattern.replace(_SIGNS[" "], r"\s+"), re.I)  # a comma would end the clause

    def _any(self, phrases: Sequence[str]) -> str:
        return f"(?:{'|'.join(map(self._pattern, phrases))})" if phrases else ""

    def _pattern(self, phrase: str) -> str:
        phrase = _LIST.sub(lambda named: f"({'/'.join(self.lists[named[1]])})", phrase)
        pattern = "".join(_SIGNS.get(character) or re.escape(character) for character in phrase)
        return re.sub(r"(?:,\?\\s\+)?…(?:,\?\\s\+)?", lambda _: self._few_words, pattern)

    @property
    def _few_words(self) -> str:
        return rf"\b[^;!?]{{0,{MAX_BETWEEN}}}\b" if self.spaced else f"[^。]{{0,{MAX_BETWEEN}}}"

    @property
    def _word_end(self) -> str:
        return _NO_LETTER_AFTER if self.spaced else ""

    @property
    def _space(self) -> str:
        return r"\s+" if self.spaced else r"\s*"
