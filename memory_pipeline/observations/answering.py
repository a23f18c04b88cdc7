"""A user's choice as a line that is understood alone: what they were asked, and what they said."""

from __future__ import annotations

import re

from memory_pipeline.text.sentences import clip, sentences, squeeze

MAX_ASKED = 240
"""Characters of a question, of which the last sentences are the question itself; and of the name of a plan."""
_LINE = re.compile(r'(?:Asked|Plan) ".+?": "(?P<words>.*)"', re.DOTALL)
_END = " ?？:：.。"


def choice_line(answer_to: str, answered: str, words: str) -> str:
    """The line for words that answer a question, or approve a plan."""
    if answer_to == "question":
        return f'Asked "{_asked(answered)}": "{words}"'
    return f'Plan "{_name_of(answered)}": "{words}"'


def words_of(line: str) -> str:
    """The user's words in such a line; any other line whole."""
    choice = _LINE.fullmatch(line)
    return choice["words"] if choice else line


def _asked(question: str) -> str:
    """The question without its mark, so that it does not end the line's sentence; of a long one its end."""
    text = squeeze(question)
    if len(text) > MAX_ASKED:
        fitting = [s.start for s in sentences(text) if len(text) - s.start <= MAX_ASKED]
        text = text[fitting[0] :] if fitting else clip(text, MAX_ASKED)
    return text.rstrip(_END)


def _name_of(plan: str) -> str:
    """Its heading, or else how it begins."""
    first = next((line for line in map(squeeze, plan.splitlines()) if line), "")
    return clip(first.lstrip("# "), MAX_ASKED).rstrip(_END)
