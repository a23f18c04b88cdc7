"""Answers of users through a tool: to its questions, and remarks on an approved or refused plan or call. Each harness
words them differently; this module reads their common parts.

A tool that asks the user is recognised, not by its name, but by questions in its arguments that offer options or are a
list, and by an answer to one of them in its result. Other tools with a question ask a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory_pipeline.harnesses.model import Answering
from memory_pipeline.harnesses.records import JsonObject, text_of

_ASKING = ("question", "prompt")
_NAMING = ("id", "question", "prompt", "header", "label")
"""Fields of a question by which an answer may refer to it."""
_SAYING = ("answers", "answer", "selected", "labels", "label", "value", "text")
"""Fields of an answer, in order of precedence, that contain the choice."""
_NOTES = ("notes", "note", "custom")
"""Fields of an answer with a remark on the choice."""
_NOTE = re.compile(r"user_note: ?")
_NOTHING = re.compile(r"unanswered|\(?no (?:option selected|answer(?: provided)?|input)\)?", re.IGNORECASE)
# The model's recommendation, which is part of the name of an option.
_ADVICE = re.compile(r"\s*\(Recommended\)(?=,|\Z)")
_REPORT = re.compile(r"(?:User has answered your questions?|Your questions? ha(?:s|ve) been answered):\s*")
_REPORT_END = re.compile(r"\.? You can now continue with [^\n]*\Z")
# Between the answer and the next question there may be a preview of the option, and the user's notes.
_AFTER_ANSWER = re.compile(r'"(?: selected preview:\n.*?)?(?:\.? (?:user )?notes: (?P<notes>.*?))?[\s,.]*\Z', re.DOTALL)
_ANY_QUESTION = re.compile(r'(?:\A|(?<=, ))"(?P<question>[^"]+)"="')
_LISTED = re.compile(
    r'^- "(?P<question>.*?)"\n  (?:Answer: (?P<answer>.*?)|\(No answer provided\))'
    r'(?:\n  User notes: (?P<notes>.*?))?(?=\n- "|\s*\Z)',
    re.DOTALL | re.MULTILINE,
)


class Answer(NamedTuple):
    """Words of the user in the result of a tool."""

    text: str
    to: Answering
    answered: str
    """The question, plan or call that they answer; "" if unknown."""


REFUSED = Answer("", "refused call", "")
"""The mark of a call's result that the user refused, with or without words."""


class _Question(NamedTuple):
    text: str
    names: tuple[str, ...]


def asks(arguments: object) -> bool:
    """Whether a call asks a question, of a user or a program."""
    return bool(_questions(arguments))


def answers_given(arguments: object, given: object, report: str = "") -> list[Answer]:
    """The user's answers to the questions in the arguments of a call, in the order of the questions.

    `given` is the answer that the harness stored as data, an object with `answers` or `answer`; `report` is the text
    for the model, which is read if there is no such object.
    """
    questions = _questions(arguments)
    found = list(_from_data(questions, given)) if isinstance(given, dict) else []
    return found or list(_answers_in_text(questions, report))


def answers_listed(text: str) -> list[Answer]:
    """The answers in a list, which Claude Code writes if a user wants to talk about the questions first."""
    found = (_answer(q["question"], [q["answer"] or ""], q["notes"]) for q in _LISTED.finditer(text))
    return [answer for answer in found if answer]


def _questions(arguments: object) -> list[_Question]:
    if not isinstance(arguments, dict):
        return []
    listed, options = arguments.get("questions"), arguments.get("options")
    found = listed if isinstance(listed, list) else [arguments] if isinstance(options, list) else []
    return [_question(number, q) for number, q in enumerate(found) if isinstance(q, dict) and _text_in(q, _ASKING)]


def _question(number: int, question: JsonObject) -> _Question:
    names = (text_of(question.get(name)) for name in _NAMING)
    return _Question(_text_in(question, _ASKING), (*filter(None, names), str(number)))


def _text_in(values: JsonObject, names: Sequence[str]) -> str:
    return next((value for name in names if (value := text_of(values.get(name)).strip())), "")


def _from_data(questions: list[_Question], given: JsonObject) -> Iterator[Answer]:
    answers = given.get("answers", given.get("answer"))
    notes = given.get("annotations")
    for number, question in enumerate(questions):
        chosen = _value_for(answers, question, number, len(questions))
        beside = _value_for(notes, question, -1, 0)
        answer = _answer(question.text, *_choice_and_notes(chosen), *_choice_and_notes(beside)[1:])
        if answer:
            yield answer


def _value_for(answers: object, question: _Question, number: int, of: int) -> object:
    """The answer to this question, found by one of its names or by its position."""
    if isinstance(answers, dict):
        return next((answers[name] for name in question.names if name in answers), None)
    if isinstance(answers, list):
        named = [a for a in answers if isinstance(a, dict) and _text_in(a, _NAMING[:3])]
        if named:
            return next((a for a in named if _text_in(a, _NAMING[:3]) in question.names), None)
        return answers[number] if len(answers) == of else None
    return answers if of == 1 else None


def _choice_and_notes(value: object) -> tuple[list[str], str]:
    """The choice and the remark on it."""
    if isinstance(value, dict):
        chosen = next((value[name] for name in _SAYING if value.get(name)), None)
        choice, notes = _choice_and_notes(chosen)
        beside = [text for name in _NOTES if (text := text_of(value.get(name))) and text not in choice]
        return choice, "\n".join(filter(None, [notes, *beside]))
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    choice = [text for text in texts if not _NOTE.match(text)]
    return choice, "\n".join(text[mark.end() :] for text in texts if (mark := _NOTE.match(text)))


def _answer(question: str, choice: Sequence[str], *notes: str | None) -> Answer | None:
    chosen = ", ".join(text for text in map(str.strip, choice) if text and not _NOTHING.fullmatch(text))
    chosen = _ADVICE.sub("", chosen)
    said = ":\n".join(filter(None, [chosen, "\n".join(filter(None, ((note or "").strip() for note in notes)))]))
    return Answer(said, "question", question) if said else None


def _answers_in_text(questions: list[_Question], report: str) -> Iterator[Answer]:
    """The answers in `"question"="answer", …`, found by searching the questions, as both may contain quotation
    marks."""
    opening = _REPORT.match(report)
    if not opening:
        return
    text = _REPORT_END.sub("", report[opening.end() :])
    places: list[tuple[str, int, int]] = []
    for question in questions:
        begin = text.find(mark := f'"{question.text}"="', places[-1][2] if places else 0)
        if begin >= 0:
            places.append((question.text, begin, begin + len(mark)))
    if not places:  # the call is not in this file
        places = [(found["question"], *found.span()) for found in _ANY_QUESTION.finditer(text)]
    ends = [*(begin for _, begin, _ in places[1:]), len(text)]
    for (question_text, _, start), end in zip(places, ends, strict=True):
        said = text[start:end].rstrip(", ")
        rest = _AFTER_ANSWER.search(said)
        answer = _answer(question_text, [said[: rest.start()] if rest else said], rest["notes"] if rest else None)
        if answer:
            yield answer
