"""The redacted text of any memory file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memory_pipeline.errors import MisuseError
from memory_pipeline.friction.rules import MAX_BYTES
from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.redactor import find_secrets

MAX_ROUNDS = 8
"""Maximum passes over a text, as replacing a secret may reveal another."""


class UnreadableMemoryError(MisuseError):
    """The file is not text or is unreadable; the message says why and what to do."""


class HiddenSecret(NamedTuple):
    """The line of a secret, from 1, and its kind; never the secret."""

    number: int
    kind: str


def read_text(path: Path) -> str:
    """The text of a memory file with Unix line ends. Raises `UnreadableMemoryError`."""
    try:
        if path.is_dir():
            raise UnreadableMemoryError(f"{path} is a directory; name a file in it, such as {path / 'AGENTS.md'}.")
        if not path.is_file():
            raise UnreadableMemoryError(f"There is no file {path}; name a memory file, such as AGENTS.md.")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise UnreadableMemoryError(
                f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} of a file that agents read."
            )
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise UnreadableMemoryError(f"{path}: {reason}. Make it readable and run it again.") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableMemoryError(f"{path} is UTF-16; save it as UTF-8.")
    if b"\0" in data:
        raise UnreadableMemoryError(f"{path} is not a text file; name a Markdown file, such as AGENTS.md.")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UnreadableMemoryError(f"{path} is not UTF-8 (line {number}); save it as UTF-8.") from None
    if not text.strip():
        raise UnreadableMemoryError(f"{path} is empty; there is nothing to read.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_secrets(text: str, redactor: Redactor) -> tuple[str, list[HiddenSecret]]:
    """The text with marks in place of its secrets, with the same line numbers, and the secrets in order. Text that an
    author marked as private is masked too, but not reported as a secret."""
    found: set[HiddenSecret] = set()
    for _ in range(MAX_ROUNDS):
        spans = find_secrets(text)
        if not spans:
            break
        for span in reversed(spans):
            secret = text[span.start : span.end]
            found.add(HiddenSecret(text.count("\n", 0, span.start) + 1, span.kind))
            mark = redactor.mark(span.kind, secret)
            text = text[: span.start] + mark + "\n" * secret.count("\n") + text[span.end :]
    return text, sorted(secret for secret in found if not secret.kind.startswith("["))
