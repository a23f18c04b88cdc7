"""Windows: the messages of a session that are observed together, and whether they are observed.

A window consists of the messages of one session, one local day and one trigger: what one compaction summarised away, or
the rest once the session is idle (`shutdown`). Every message is in exactly one window.

The task of a session is taken from the user's messages: not consent, thanks, praise or an order to commit. Such words
are ignored, so that "ok, now add paging to the list" names its task. They are everyday words of a few languages; in
other languages a short "obrigado" may count as a task, but only in a session without a longer message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

import msgspec

from memory_pipeline.days import day_of
from memory_pipeline.harnesses.model import CHOICES, Compaction, Message, ParsedSession
from memory_pipeline.harnesses.speakers import APPROVED_PLAN
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.text.phrases import word_list
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

COMPACTION, SHUTDOWN = "compaction", "shutdown"
STILL_ACTIVE = "the session is still active"
COMPLETED = "Session completed normally."
"""The suggested response if none is expected."""
MAX_TASK = 200
"""Maximum characters of a task."""
NO_PERSON = "no message of a person in it"
VOIDED = "all that the user typed in it was taken back"
TOO_FEW = re.compile(r"fewer than \d+ user messages$")


@dataclass(frozen=True, slots=True)
class Window:
    dedupe_key: str
    session_id: str
    day: date
    trigger: str
    messages: tuple[Message, ...]
    compaction: Compaction | None = None
    """The compaction that triggered the window, None for the rest of the session."""

    @property
    def standing(self) -> list[Message]:
        """The messages that were not voided."""
        return [m for m in self.messages if not m.voided]

    @property
    def user_messages(self) -> int:
        """The number of user messages that were not voided."""
        return sum(m.role == "user" for m in self.standing)

    @property
    def captured_at(self) -> datetime:
        """The time at which the window was complete: that of its compaction, or of its last message."""
        at = self.compaction.at if self.compaction else None
        return at or max(m.written_at for m in self.messages)

    @property
    def files_read(self) -> list[str]:
        """Paths that were only read, as given to the tools."""
        return sorted({path for m in self.messages for path in m.files_read} - set(self.files_modified))

    @property
    def files_modified(self) -> list[str]:
        return sorted({path for m in self.messages for path in m.files_modified})

    @property
    def tokens(self) -> int:
        return sum(estimate(m.text, tool=m.role == "tool") for m in self.messages)

    @property
    def tokens_said(self) -> int:
        """Tokens of messages of the user and the model that were not voided, without tools and inserted text."""
        return sum(estimate(m.text) for m in self.standing if m.role in ("user", "assistant"))

    @property
    def current_task(self) -> str | None:
        """The last task that the user gave, in their own words."""
        asked = (own_words(m.text) for m in reversed(self.standing) if m.role == "user" and m.answer_to not in CHOICES)
        task = current_task(asked)
        return clip(task, MAX_TASK) if task else None

    @property
    def suggested_response(self) -> str | None:
        """The next step at the end of the window: the model's unanswered question, or the user's unanswered last
        words."""
        said = [m for m in self.standing if m.role in ("user", "assistant") and m.text.strip()]
        if not said:
            return None
        if said[-1].role == "user":
            return clip(own_words(said[-1].text), MAX_TASK) or None
        last = " ".join(said[-1].text.rstrip().split("\n")[-1].split())
        if last.endswith(("?", "？")):
            return last[-MAX_TASK:]
        return COMPLETED if self.trigger == SHUTDOWN else self.current_task


def own_words(text: str) -> str:
    """The text that a user typed, without pasted parts."""
    own, end = [], 0
    for start, stop in quoted_spans(text):
        own.append(text[end:start])
        end = stop
    return " ".join([*own, text[end:]]).strip()


def dedupe_key(session_id: str, trigger: str, first: datetime) -> str:
    """sha256 over session, trigger and the time of the window's first entry, as hex."""
    return hashlib.sha256(f"{session_id}\x1f{trigger}\x1f{first.isoformat()}".encode()).hexdigest()


def cut_windows(session: ParsedSession, messages: Sequence[Message], zone: ZoneInfo) -> list[Window]:
    """The windows of these messages (all or part of the session's), in order of their first message."""
    compaction_of = _compactions_by_message(session, zone)
    groups: dict[tuple[date, int], list[Message]] = {}
    for message in messages:
        key = (day_of(message.said_at, zone), compaction_of.get(message.message_id, -1))
        groups.setdefault(key, []).append(message)
    windows = []
    latest: dict[str, str] = {}
    for (day, number), members in groups.items():
        trigger = SHUTDOWN if number < 0 else COMPACTION
        first = key_text = dedupe_key(session.session_id, trigger, members[0].said_at)
        if first in latest:  # two compactions with messages of the same time
            key_text = hashlib.sha256(latest[first].encode()).hexdigest()
        latest[first] = key_text
        compaction = None if number < 0 else session.compactions[number]
        windows.append(Window(key_text, session.session_id, day, trigger, tuple(members), compaction))
    return windows


def _compactions_by_message(session: ParsedSession, zone: ZoneInfo) -> dict[str, int]:
    """The index of the compaction that summarised each message away, if both are on the same day. Earlier messages of a
    later day's compaction stay in the window of their own day: otherwise observing today would remove yesterday's
    observations."""
    if not session.compactions:
        return {}
    day = {m.message_id: day_of(m.said_at, zone) for m in session.messages}
    found: dict[str, int] = {}
    for number, compaction in enumerate(session.compactions):
        ids = compaction.message_ids
        last = max((day[i] for i in ids if i in day), default=None)
        found |= {i: number for i in ids if day.get(i) == last}
    return found


def begins_with_plan(messages: Iterable[Message]) -> bool:
    """Whether the first message is a plan of the model that the user approved before the session began. Text that
    programs insert before it does not count."""
    first = next((m for m in messages if not m.voided and (m.role != "injected" or _is_plan(m))), None)
    return first is not None and _is_plan(first)


def _is_plan(message: Message) -> bool:
    return message.role == "injected" and message.text.startswith(APPROVED_PLAN)


def reason_not_observed(
    window: Window, *, idle: bool, typed: int, min_user_messages: int, has_plan: bool = False
) -> str | None:
    """Why a window is stored but not observed; None if it is observed. `typed` is the number of messages that the user
    typed in the whole session, and `has_plan` whether an approved plan begins it: approving one is agreeing to the
    result of many messages.
    """
    if not window.user_messages and not (has_plan and begins_with_plan(window.messages)):
        return VOIDED if any(m.role == "user" for m in window.messages) else NO_PERSON
    if window.trigger == COMPACTION:
        return None
    if not idle:
        return STILL_ACTIVE
    if not has_plan and max(typed, window.user_messages) < min_user_messages:
        return too_few(min_user_messages)
    return None


def too_few(min_user_messages: int) -> str:
    """The reason for observing a window only for rules and corrections."""
    return f"its session has fewer than {min_user_messages} user messages"


def is_too_few(reason: str | None) -> bool:
    """Whether this is that reason, also in the wording of earlier versions."""
    return bool(reason and TOO_FEW.search(reason))


def windows_by_day(session: ParsedSession, zone: ZoneInfo) -> dict[date, list[Window]]:
    """All windows of a session by day."""
    found: dict[date, list[Window]] = {}
    for window in cut_windows(session, session.messages, zone):
        found.setdefault(window.day, []).append(window)
    return found


def digest(session: ParsedSession, windows: Iterable[Window]) -> str:
    """A hash of the session's messages on a day.

    The session's name and files are left out: they change as it continues, but earlier days must stay valid.
    """
    total = hashlib.sha256(repr((session.session_id, session.cwd, session.parent_id, session.excluded)).encode())
    for window in windows:
        total.update(f"{window.dedupe_key}{window.trigger}{window.captured_at}".encode())
        total.update(msgspec.json.encode(window.messages))
        if session.inherited:
            total.update(repr([m.message_id in session.inherited for m in window.messages]).encode())
    return total.hexdigest()


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
