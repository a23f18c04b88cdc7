"""The task of a session, taken from the user's messages: not consent, thanks, praise or an order to commit.

Such words are ignored, so that "ok, now add paging to the list" names its task. They are everyday words of a few
languages; in other languages a short "obrigado" may count as a task, but only in a session without a longer message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory_pipeline.text.phrases import word_list
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.similarity import content_words

MIN_WORDS = 3
"""Minimum content words of a task. "Fix the tests" has two: it counts if there is no longer message."""
MIN_WORDS_BESIDE_COMMIT = 5
"""Minimum content words of a sentence about committing: "commit this to main with a good message" names no task."""
_COMMIT = deferred(r"\b(?:commit|push|merge?|squash|amend)(?:t?e[nstdr]?|t?ing|s|ez)?\b", re.I)
_COMMIT_CJK = deferred(r"提交|推送|合并|合併|コミット|プッシュ|マージ|커밋|푸시")
_SENTENCE = deferred(r"(?<=[.!?…])\s+|[\n。！？]+")
_CLOSING = word_list("closing")
_CLOSING_CJK = deferred(
    r"好的?|可以|行|嗯|是的?|对|對|谢谢|謝謝|感谢|没问题|沒問題|继续|繼續|完美|不错|不錯|很棒|然后|然後|并且?|並且?|现在|請|请|吧|了"
    r"|はい|了解|ありがとう(?:ございます)?|お願いします|いいね|続けて|大丈夫|です|좋아요?|네|감사합니다|고마워요?|계속"
)


def current_task(newest_first: Iterable[str]) -> str | None:
    """The latest of a user's messages that names a task; if all are short, the one with the most content words. None if
    they only agree, thank or ask for a commit."""
    best, most = None, 0
    for message in newest_first:
        said = words_about_a_task(message)
        if said >= MIN_WORDS:
            return message
        if said > most:
            best, most = message, said
    return best


def words_about_a_task(message: str) -> int:
    """The number of content words in a message apart from consent, thanks, praise and orders to commit."""
    total = 0
    for sentence in _SENTENCE.split(message):
        left = len(content_words(_CLOSING_CJK.sub(" ", _COMMIT_CJK.sub(" ", sentence))) - _CLOSING)
        commits = _COMMIT.search(sentence) or _COMMIT_CJK.search(sentence)
        total += left if not commits or left >= MIN_WORDS_BESIDE_COMMIT else 0
    return total
