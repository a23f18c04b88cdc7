"""Redaction: secrets are replaced by typed marks, such as `[redacted:github-token:3fa91c]`, before anything is stored.

The six hex digits are a salted hash of the secret: equal secrets stay equal, and cannot be looked up without the salt.
Detected are tokens of known formats, secrets recognised by their context (URLs, headers, cookies, command lines), and
literal values of names such as PASSWORD or API_KEY. Other secrets are not found. Text between `<private>` and
`</private>` is always removed.
"""

from __future__ import annotations

from memory_pipeline.redaction.redactor import Redactor, Unredacted, redactor_of

__all__ = ["Redactor", "Unredacted", "redactor_of"]
