"""The words by which a language shows what a sentence is, as its file has them, and the patterns that they become.

A file has a table for each role of `Cues`, and in it lists of phrases by where they must stand:

    words   anywhere in the sentence
    begins  at its beginning
    opens   at its beginning, behind any of the language's `fillers` ("ok, now please ...")
    clause  at the beginning of a part of it
    ends    at its end
    short   at its beginning, with hardly anything behind
    only    the sentence has nothing but these
    except  no occurrence of any of these: "never mind"

In a phrase `*` is any ending of a word, `_` any word, `{do}` a word of the list `do` and `…` a few words; `(a/b)` is
one of the two, `[a/b]` one of them or nothing, and a comma may stand at any space. In the roles `gives_up` and
`refuses`, `X` is what is given up or refused. Upper and lower case are the same, and so are both apostrophes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("english", "german", "french", "spanish", "japanese", "chinese")
"""Names of the files."""
WORDS = "words"
"""The file with the lists of single words, a table for each language. Every command reads it, so it is small."""
NEVER = re.compile(r"(?!)")
MAX_BETWEEN = 60
"""Maximum characters that `…` matches."""
MAX_BEHIND = 40
"""Characters behind a phrase of `short`."""
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
_NO_LETTER_BEFORE, _NO_LETTER_BEHIND = r"(?<!\w)", r"(?!\w)"
_ELSE = {
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
    "words": "{start}@{found}{behind}",
    "begins": r"^\W*@{found}{behind}",
    "opens": r"^\W*(?:{fillers}[,.!:，。]?{space})*@{found}{behind}",
    "clause": r"(?:^|[.,;:!?，。；：]\s*)(?:{fillers}{space})*@{found}{behind}",
    "ends": r"@{found}[。．.!！\s]*$",
    "short": r"^\W*@{found}{behind}[^.。]{{0,{max_behind}}}[.!,。！]?\s*$",
    "only": r"^(?:@{found}|\d|[abc]|\W)+$",
}
_EXCEPT = "except"


class Cues:
    """The cues of one language; a role without words never matches. A pattern is compiled when it is first used: all
    of a language take a fifth of a second, and most commands ask for one or two."""

    rule: re.Pattern[str]
    """Says what is to hold from now on."""
    preference: re.Pattern[str]
    decided: re.Pattern[str]
    """Says plainly that something was decided."""
    decision: re.Pattern[str]
    obligation: re.Pattern[str]
    correction: re.Pattern[str]
    """Says that something was wrong: mostly how the sentence begins."""
    contrast: re.Pattern[str]
    """A contrast of two things: a correction, unless it is a rule or a decision."""
    asking: re.Pattern[str]
    """A question that does without its mark."""
    correcting_question: re.Pattern[str]
    open: re.Pattern[str]
    """Statements about something unknown."""
    momentary: re.Pattern[str]
    """An instruction for this moment, done when it is done."""
    request: re.Pattern[str]
    """Narrower: a line that begins with "use" or "run" may be a rule."""
    accepting: re.Pattern[str]
    """Text that begins with consent."""
    acceptance: re.Pattern[str]
    """Text that is only consent, thanks or "go on"."""
    root_cause: re.Pattern[str]
    state_change: re.Pattern[str]
    convention: re.Pattern[str]
    progress: re.Pattern[str]
    success: re.Pattern[str]
    """News that something works or is done."""
    reason: re.Pattern[str]
    plan: re.Pattern[str]
    """The model says what it does next."""
    offer: re.Pattern[str]
    proposal: re.Pattern[str]
    """The model's idea of what to do, which nothing has become of yet."""
    praise: re.Pattern[str]
    verdict: re.Pattern[str]
    """The model judging its own work, which is no fact about the work."""
    hedge: re.Pattern[str]
    """The model's doubt."""
    doubt: re.Pattern[str]
    """A user's doubt; "I think" is only polite."""
    guess: re.Pattern[str]
    supposes: re.Pattern[str]
    """A line that weighs what could be."""
    for_now: re.Pattern[str]
    """Words that restrict a rule to this moment."""
    later: re.Pattern[str]
    complaint: re.Pattern[str]
    """About what happened, or what does not matter: nothing normative."""
    rejection: re.Pattern[str]
    """A reply that does not let the model's words stand."""
    retraction: re.Pattern[str]
    """The speaker was wrong."""
    sets_rule: re.Pattern[str]
    """A user lays down a rule in explicit words; narrower than `rule`."""
    sets_preference: re.Pattern[str]
    sets_decision: re.Pattern[str]
    remembers: re.Pattern[str]
    """A user asks to remember something."""
    unsettled: re.Pattern[str]
    """Words with which a sentence lays nothing down: about one case, a past one or a possible one."""
    qualifies: re.Pattern[str]
    """How a sentence begins that belongs to the one before: "except ...", "then ..."."""
    amends: re.Pattern[str]
    """A user announces that they change what was settled; what follows says how."""
    alternatives: re.Pattern[str]
    """Stands between the things that a question offers."""
    chooses: re.Pattern[str]
    """A question that offers things to choose from, or asks which one."""
    takes_back: re.Pattern[str]
    """A user retracts what they have just said."""
    changes_mind: re.Pattern[str]
    """A user sets something else than before."""
    wishes: re.Pattern[str]
    turns: re.Pattern[str]
    """The speaker turns away from what was so far."""
    lasting: re.Pattern[str]
    """Words that make a wish apply from now on, which a request of the moment does not end."""
    passing: re.Pattern[str]
    """A clause for the moment, or under a condition."""
    again: re.Pattern[str]
    """Says in passing that it was said before."""
    interjection: re.Pattern[str]
    """The beginning of a repeated correction, which does not say what was wanted."""
    thanks: re.Pattern[str]
    finished: re.Pattern[str]
    """A piece of work is done."""
    next_thing: re.Pattern[str]
    """A user turns to another thing: "now let's ..."."""
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
        if places is None and role in _ELSE:
            found = getattr(self, _ELSE[role])
        else:
            found = self._language.role(role, places or {})
        setattr(self, role, found)
        return found


@cache
def load(name: str) -> Cues:
    """The cues of the language with this file; raises `ValueError` for an unknown role or place."""
    data = dict(_read(name))
    language = _Language(data.pop("spaced", True), data.pop("fillers", ()), _read(WORDS).get(name, {}).get("do", ()))
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
    do: Sequence[str]
    """Verbs of what an agent is told to do, in the form of an instruction."""

    def role(self, role: str, places: Mapping[str, Sequence[str]]) -> Any:
        if group := _THING.get(role):
            return tuple(self._with_thing(phrase, group) for phrase in places.get("words", ()))
        exceptions = self._any(places.get(_EXCEPT, ()))
        parts = [self._place(place, phrases) for place, phrases in places.items() if phrases and place != _EXCEPT]
        lookahead = f"(?!{exceptions}{self._behind})" if exceptions else ""
        return re.compile("|".join(part.replace("@", lookahead, 1) for part in parts), re.I) if parts else NEVER

    def _place(self, place: str, phrases: Sequence[str]) -> str:
        """The pattern, with @ where an exception must not begin."""
        return _PLACES[place].format(
            found=self._any(phrases),
            fillers=self._any(self.fillers),
            start=r"(?:(?<!\w)|(?=\W))" if self.spaced else "",  # a phrase may begin with a comma
            behind=self._behind,
            space=self._space,
            max_behind=MAX_BEHIND,
        )

    def _with_thing(self, phrase: str, group: str) -> re.Pattern[str]:
        """`X` reaches to the end of the clause, or to what follows it in the phrase."""
        before, _, behind = phrase.partition("X")
        stop = r"[^,.;:!()，。；、]" if group == "words" else r"[^，。；、]" if not self.spaced else "."
        thing = rf"(?P<{group}>{stop}+{'?' if behind else ''})"
        start = _NO_LETTER_BEFORE if self.spaced and before[:1] != "," else ""
        pattern = f"{start}{self._pattern(before)}{thing}{self._pattern(behind)}"
        return re.compile(pattern.replace(_SIGNS[" "], r"\s+"), re.I)  # a comma would end the clause

    def _any(self, phrases: Sequence[str]) -> str:
        return f"(?:{'|'.join(map(self._pattern, phrases))})" if phrases else ""

    def _pattern(self, phrase: str) -> str:
        phrase = phrase.replace("{do}", f"({'/'.join(self.do)})")
        pattern = "".join(_SIGNS.get(character) or re.escape(character) for character in phrase)
        return re.sub(r"(?:,\?\\s\+)?…(?:,\?\\s\+)?", lambda _: self._few_words, pattern)

    @property
    def _few_words(self) -> str:
        return rf"\b[^;!?]{{0,{MAX_BETWEEN}}}\b" if self.spaced else f"[^。]{{0,{MAX_BETWEEN}}}"

    @property
    def _behind(self) -> str:
        return _NO_LETTER_BEHIND if self.spaced else ""

    @property
    def _space(self) -> str:
        return r"\s+" if self.spaced else r"\s*"
