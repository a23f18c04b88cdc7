"""A user's choice as a self-contained line: the question or plan, and the user's answer."""

from __future__ import annotations

import re

from memory_pipeline.text.sentences import clip, sentences, squeeze

MAX_ASKED = 240
"""Maximum characters of a question, whose last sentences are kept, and of the name of a plan."""
_LINE = re.compile(r'(?:Asked|Plan) ".+?": "(?P<words>.*)"', re.DOTALL)
_END = " ?？:：.。"


def choice_line(answer_to: str, answered: str, words: str) -> str:
    """The line for the user's words, which answer a question or approve a plan."""
    if answer_to == "question":
        return f'Asked "{_question_text(answered)}": "{words}"'
    return f'Plan "{_plan_name(answered)}": "{words}"'


def words_of(line: str) -> str:
    """The user's words in such a line; any other line whole."""
    choice = _LINE.fullmatch(line)
    return choice["words"] if choice else line


def _question_text(question: str) -> str:
    """The question without its question mark, which would end the line's sentence; only the end of a long question."""
    text = squeeze(question)
    if len(text) > MAX_ASKED:
        fitting = [s.start for s in sentences(text) if len(text) - s.start <= MAX_ASKED]
        text = text[fitting[0] :] if fitting else clip(text, MAX_ASKED)
    return text.rstrip(_END)


def _plan_name(plan: str) -> str:
    """The first line that is not empty, usually the heading."""
    first = next((line for line in map(squeeze, plan.splitlines()) if line), "")
    return clip(first.lstrip("# "), MAX_ASKED).rstrip(_END)
