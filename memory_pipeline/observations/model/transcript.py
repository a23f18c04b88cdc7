"""A window as it is shown to a language model: numbered messages with times, in parts that fit into one request."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memory_pipeline.llm.request import RequestImage
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.sessions.images import NoSuchImageError, load_image
from memory_pipeline.text.dates import clock_of
from memory_pipeline.text.tokens import estimate

INJECTED = 300
"""Characters shown of text that a program inserted: enough to recognise it."""
ANSWERED = 400
"""Maximum characters shown of a user's answer through a tool; the call that asked precedes it."""
PLAN = 6_000
"""Characters shown of a plan that the user approved: it states the goal of the session and the reasons."""
PASTED = 1_500
"""Characters shown of each text that a user pasted."""
MIN_FULL = 0.7
"""Minimum share of the cap that a part fills if it ends early at a natural boundary."""
MIN_TOPIC = 300
"""Minimum tokens of a part that ends with its topic; less is not worth the instructions of a request."""
MAX_BEFORE = 1_500
"""Characters shown of each earlier message, taken from its end, where the question is."""
MAX_IMAGE_BYTES = 4_000_000
"""Maximum size of an image: providers refuse larger ones."""
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
FENCE = "transcript"


@dataclass(frozen=True)
class Chunk:
    """Messages `start` to `end` (exclusive) of a window, with the text that shows them."""

    start: int
    end: int
    text: str
    tokens: int
    fence: str
    """A delimiter that cannot occur inside `text`: it contains a hash of it."""


def chunks(
    messages: Sequence[WindowMessage], cap: int, zone: ZoneInfo, first: int = 0, topics: Collection[int] = ()
) -> list[Chunk]:
    """The messages of the window from `first` on, in parts of at most `cap` estimated tokens, cut between messages.

    When a window grows, all parts but the last stay the same. A part ends before a message of the user if one is near,
    else before one of the model, so that a call is not separated from its result. A single message that is longer than
    the cap loses its middle. A part also ends where one of `topics` begins, unless it is very short.
    """
    shown = [_fitting(m, i + 1, cap, zone) if i >= first else ("", 0) for i, m in enumerate(messages)]
    found: list[Chunk] = []
    start, tokens = first, 0
    for i, (_, cost) in enumerate(shown):
        if i in topics and i > start and tokens >= MIN_TOPIC:
            found.append(_chunk(start, i, shown))
            start, tokens = i, 0
        while i > start and tokens + cost > cap:
            end = _natural_end(messages, shown, start, i, cap)
            found.append(_chunk(start, end, shown))
            start, tokens = end, sum(cost for _, cost in shown[end:i])
        tokens += cost
    return [*found, _chunk(start, len(messages), shown)] if len(messages) > first else []


def _natural_end(
    messages: Sequence[WindowMessage], shown: Sequence[tuple[str, int]], start: int, end: int, cap: int
) -> int:
    """The best position up to `end` at which to end a part, without wasting much of the cap."""
    best, left = end, MIN_FULL * cap
    tokens = sum(cost for _, cost in shown[start:end])
    for i in range(end, start, -1):
        if tokens < left:
            break
        if messages[i].role == "user":
            return i
        if messages[i].role == "assistant" and messages[best].role != "assistant":
            best = i
        tokens -= shown[i - 1][1]
    return best


def _chunk(start: int, end: int, shown: Sequence[tuple[str, int]]) -> Chunk:
    text = "\n\n".join(text for text, _ in shown[start:end])
    fence = f"{FENCE}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return Chunk(start, end, text, sum(cost for _, cost in shown[start:end]), fence)


def _fitting(message: WindowMessage, number: int, cap: int, zone: ZoneInfo) -> tuple[str, int]:
    is_tool = message.role == "tool"
    text = rendered(message, number, zone)
    cost = estimate(text, tool=is_tool)
    if cost > cap:
        half = int(len(text) * cap / cost / 2) - 40
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
        cost = estimate(text, tool=is_tool)
    return text, cost


def rendered(message: WindowMessage, number: int, zone: ZoneInfo) -> str:
    """One message: `[#12 14:03 user]`, or `[#12 early in session user]`, and its text; pasted and injected text is
    clipped."""
    who = [
        "plan" if message.is_plan else message.role,
        *([message.tool_name] if message.tool_name else []),
        *(["error"] if message.is_error else []),
    ]
    text = message.text
    if message.role == "injected":
        text = _clipped(text, PLAN if message.is_plan else INJECTED)
    if message.role == "user" and message.quoted:
        text = _with_pastes(message)
    if message.role == "user" and message.answer_to and message.answered:
        text = f"(to the {message.answer_to}: {_clipped(message.answered, ANSWERED)})\n{text}"
    return f"[#{number} {clock_of(message.said_at, zone, message.untimed)} {' '.join(who)}]\n{text.strip()}"


def _with_pastes(message: WindowMessage) -> str:
    parts, end = [], 0
    for start, stop in message.quoted:
        parts += [message.text[end:start], f"(pasted) {_clipped(message.text[start:stop].strip(), PASTED)}\n"]
        end = stop
    return "".join([*parts, message.text[end:]])


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit} characters left out …]"


def tail_of(text: str) -> str:
    """The header and the last characters of an earlier message that is shown as context."""
    if len(text) <= MAX_BEFORE:
        return text
    who, _, said = text.partition("\n")
    return f"{who}\n[…] {said[-MAX_BEFORE:]}"


def images_of(messages: Sequence[WindowMessage], left: int) -> Iterator[RequestImage]:
    """The first images of these messages that can be shown; others are represented only by their mark in the text."""
    for place in (place for message in messages for place in message.images):
        if not left:
            return
        try:
            image = load_image(place.source_file, place.line, place.block)
        except NoSuchImageError:
            continue
        if image.media_type in IMAGE_TYPES and len(image.data) <= MAX_IMAGE_BYTES:
            left -= 1
            yield RequestImage(image.media_type, image.data)
