"""What the words of a finished line give away: that it asks, supposes, orders, guesses, or takes another line's place.

A line is a sentence that an observer or a reflector wrote, which may become one of MEMORY.md. What people and models
say in a session is read by the cues of `cues.py`. Those of other languages than English are in
`languages/`.
"""

from __future__ import annotations

import re

from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.languages.roles import Cues
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.similarity import words as all_words

_ASKS = re.compile(
    r"[?？][)\"'”’*_`]*$|^(?:(?:and|but|so|ok|no),? )?(?:what|which|who|why|how|where|when) "
    r"(?:is|are|was|were|do|does|did|should|shall|can|could|would|about|if)\b",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    r"\b(?:maybe|perhaps|possibly|hypothetically|might|wondering)\b|\bwhat if\b|\bi wonder\b|\bsuppose\b"
    r"|\b(?:if|in case) (?:we|i)\b|\bcould\b(?! not\b)|\bwould be (?:nice|good|better|great|cool|possible)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:always|never|must|should|shall|needs? to|have to|do not|don't|ignore|disregard|forget|remember|make sure"
    r"|ensure|from now on|instructions?|instead of|system prompt)\b"
    r"|^(?:please )?(?:use|run|add|set|send|call|open|write|read|install|execute|delete|remove|download|fetch|curl"
    r"|click|visit|reply|respond|answer|say|tell|print|store|save|keep|put|take|approve|prefer|avoid|stop|start|switch|trust"
    r"|act|pretend|you)\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"; .*; |→")
_SUCCESS = re.compile(
    r"\b(?:success(?:ful(?:ly)?)?|works?(?: now)?|working|resolved|completed?|passing|passed|verified|is ready)\b|✅",
    re.IGNORECASE,
)
_GUESSES = re.compile(r"\b(?:i (?:think|guess|feel|assume)|seems?|appears?|looks like|probably)\b", re.IGNORECASE)
_POINTS = re.compile(r"\b(?:it|this|that|these|those|them|here|there|it's|that's)\b", re.IGNORECASE)
_REPLACES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:instead of|rather than|in place of) (?P<old>.+)",
        r"(?:switch|mov|migrat|chang)\w* (?:\w+ ){0,3}?from (?P<old>.+?) (?:to|over to) ",
        r"replac\w* (?P<old>.+?) (?:with|by) ",
        r"no longer (?:use|using|uses|on|with|in)? ?(?P<old>.+)",
        r",? (?:and )?not (?P<old>.+)",
    )
)
_END = re.compile(r"[,.;:!()]|\s(?:for|in|on|at|to|when|while|because|since|as|if|unless|with|and|or|but|any)\b.*")
_END_OF_CLAUSE = re.compile(r"[,;:!?()，。；！？、]|\.(?=\s|$)")
_DENIES = re.compile(
    r"\b(?:never|not|no|don't|stop|avoid|without|isn't|aren't|won't|can't)\b(?P<words>[^,.;:!()]*)", re.IGNORECASE
)
_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")
_VERBS = frozenset(
    """
    use uses used using prefer prefers take takes run runs keep always now instead please must should want wants with
    go goes everything everywhere we're we'll it's let's
    verwenden verwende nutzen nutze benutzen benutze nehmen nimm utiliser utilise utilisez utilisons prendre prends usar
    usa uses use usamos utilizar utiliza
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
MAX_NAME_WORDS = 4
"""Words that the thing which is replaced may have; a longer phrase is a clause and names nothing."""
MIN_STEM = 3
"""Letters of a word that is not shortened."""
MAX_WORDS_BESIDE = 2
"""Words beside it with which a line is still about that thing alone."""


def asks(text: str) -> bool:
    foreign = foreign_cues(text)
    return _ASKS.search(text.strip()) is not None or (foreign is not None and _has(foreign.asking, text))


def supposes(text: str) -> bool:
    """Whether it weighs what could be: "maybe", "if we", "could"."""
    foreign = foreign_cues(text)
    return _has(foreign.supposes if foreign else _SUPPOSES, text)


def orders(text: str) -> bool:
    """Whether it tells somebody what to do."""
    foreign = foreign_cues(text)
    if foreign and (_has(foreign.rule, text) or _has(foreign.momentary, text)):
        return True
    return _ORDERS.search(text.strip()) is not None


def guesses(text: str) -> bool:
    """Whether somebody only thinks that it is so: "I think", "seems"."""
    foreign = foreign_cues(text)
    return _has(foreign.doubt if foreign else _GUESSES, text)


def points(text: str) -> bool:
    """Whether it says "that" or "here", which nobody understands later unless it also names something."""
    return _POINTS.search(text) is not None


def reports_success(text: str) -> bool:
    """Whether it is news that something works or is done."""
    foreign = foreign_cues(text)
    return _SUCCESS.search(text) is not None or (foreign is not None and _has(foreign.progress, text))


def is_list(text: str) -> bool:
    """Whether several things stand in it one after the other, as in a model's list of changes."""
    return _LIST.search(text) is not None


def _has(cue: re.Pattern[str], text: str) -> bool:
    return cue.search(text.strip()) is not None


def takes_place_of(text: str, older: str) -> bool:
    """Whether the text says that something else holds now than the older line says: "use X instead of Y" after "use Y".

    The older line must name Y, be for it, and be about little else than what the text is about too.
    """
    said, of_text, gone_before = _stems(older), _stems(text), _denied_stems(older)
    for words in retracted_names(text):
        named = frozenset(map(stem, words))
        beside = said - named - _VERB_STEMS
        about = len(beside) <= MAX_WORDS_BESIDE or 2 * len(beside & of_text) >= len(beside)
        if named <= said and not named & gone_before and about:
            return True
    return False


def breaks_with(text: str, older: str) -> bool:
    """Whether the text gives up something that the older line holds on to: they do not say the same, however many
    words they share. Much less is needed than for taking its place."""
    held = _stems(older) - _denied_stems(older) - _VERB_STEMS
    return any(not held.isdisjoint(map(stem, named)) for named in retracted_names(text))


def contradict(one: str, other: str) -> bool:
    """Whether one of two lines gives up what the other holds on to."""
    return breaks_with(one, other) or breaks_with(other, one)


def opposes(one: str, other: str) -> bool:
    """Whether one of two lines refuses what the other does, in any way of saying so: "never X" and "X", too.

    More than contradict, and less sure: it is asked where lines come from different projects, which rarely mean one
    and the same thing.
    """
    return contradict(one, other) or _refuses(one, other) or _refuses(other, one)


def _refuses(one: str, other: str) -> bool:
    return not _denied_stems(one).isdisjoint(_stems(other) - _denied_stems(other) - _VERB_STEMS)


def retracted_names(text: str) -> list[frozenset[str]]:
    """What the text says is to be used no more, each as its words."""
    foreign = foreign_cues(text)
    if foreign:
        return [frozenset([name]) for name in _foreign_names(text, foreign)]
    found = []
    for pattern in _REPLACES:
        for match in pattern.finditer(text):
            words = content_words(_END.split(match["old"].strip(), maxsplit=1)[0]) - _VERBS
            if 0 < len(words) <= MAX_NAME_WORDS:
                found.append(words)
    return found


def _foreign_names(text: str, foreign: Cues) -> list[str]:
    """Of each thing its first word that is no verb of using it: where a name ends is known in English only."""
    found = []
    for pattern in foreign.replaces:
        for match in pattern.finditer(text):
            old = _END_OF_CLAUSE.split(match["old"].strip(), maxsplit=1)[0]
            carrying = content_words(old) - _VERBS
            found += [word for word in all_words(old) if word in carrying][:1]
    return list(dict.fromkeys(found))


def _denied_stems(text: str) -> frozenset[str]:
    """The stems of what the text itself gives up or refuses."""
    foreign = foreign_cues(text)
    denies = foreign.denies if foreign else _DENIES
    named = [word for words in retracted_names(text) for word in words]
    denied = [word for match in denies.finditer(text) for word in content_words(match["words"])]
    return frozenset(map(stem, [*named, *denied]))


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))


def stem(word: str) -> str:
    """Crude: "tag", "tags", "tagged" and "tagging" are one word, and so are "image" and "images"."""
    root = _ENDING.sub("", word) if word.isalpha() and len(word) > MIN_STEM else word
    is_doubled = root != word and len(root) >= MIN_STEM and root[-1] == root[-2]
    return root[:-1] if is_doubled else root


_VERB_STEMS = frozenset(map(stem, _VERBS))


_THING = r"(?:the |a |an |any |our |your |my |using |use |in |on |with |from )*[`\"'“‘]?([\w./@:+-]*\w/?)"
_RETRACTED = (
    re.compile(
        r"\b(?:instead of|rather than|in place of|away from|replac(?:e|es|ed|ing)|supersed(?:e|es|ed|ing)"
        r"|(?:switch|migrat|mov|chang)(?:e|es|ed|ing) (?:everything |over |away )?from|stop(?:s|ped)? using"
        rf"|no longer (?:use|uses|need|needs|run|runs|have|has)|drop(?:s|ped)?) (?!by\b|with\b|it\b){_THING}",
        re.I,
    ),
    re.compile(r"([\w./@:+-]*\w)[`\"'”’]? (?:is|was|are|were|has been|have been|got) (?:now )?replaced by\b", re.I),
)
_REFUSED = re.compile(
    r"\b(?:never|not|no|avoid|without|stop|remov\w+|delet\w+|(?:do|does|must|should|can)n['’]t)\b([^.;!?\n]*)", re.I
)
"""What the rest of a clause is about that refuses something."""
COMMON_TO_CHANGES = content_words(
    "use uses used using instead rather than replace replaces replaced replacing supersede drop dropped stop stopped "
    "switch switched migrate migrated move moved change changed longer now always never every everything all only also "
    "must need needs run runs go goes make makes take takes keep keeps work works decided decision agreed let's we "
    "there here thing one place new old project just or and real actual previous previously before earlier any more"
) | {"it", "this", "that", "them"}
"""Words that two sentences about a change share whatever they are about."""


def retracted_words(clause: str) -> frozenset[str]:
    """What a clause says is no longer used, as words. Of each thing its first word, and in more ways of saying it than
    `retracted_names` knows, which looks for all words of a thing: reflections end only what is about little else."""
    foreign = foreign_cues(clause)
    if foreign:
        return frozenset(_foreign_names(clause, foreign)) - COMMON_TO_CHANGES
    found = (word for cue in _RETRACTED for match in cue.finditer(clause) for word in content_words(match[1]))
    return frozenset(word for word in found if word not in COMMON_TO_CHANGES and len(word) > 1)


def refused_words(text: str) -> frozenset[str]:
    """The words of clauses that refuse something."""
    foreign = foreign_cues(text)
    refused = foreign.denies if foreign else _REFUSED
    return frozenset(word for found in refused.finditer(text) for word in content_words(found[1]))
