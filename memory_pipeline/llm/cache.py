"""Cache of paid answers by request: `answers/<first two of the key>/<key>.json`.

Each file has one JSON object::

    {"key": …, "model": …, "text": …, "input_tokens": …, "output_tokens": …, "cost_usd": …, "seconds": …,
     "truncated": …, "asked_at": …}

Only `text` is required. `key` is `Request.key`, and `model` the model's name as reported by the provider. A file at a
request's path counts as its recorded answer, whichever model wrote it: benchmarks read it as if the model had answered.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.markdown.safe_write import replace_file
from memory_pipeline.settings import Settings

_STORED = ("model", "text", "input_tokens", "output_tokens", "cost_usd", "seconds", "truncated")


class NotRecordedError(MemoryPipelineError):
    """There is no recorded answer to a request, and no model may be called."""

    def __init__(self, key: str) -> None:
        super().__init__(f"No answer is recorded for the request {key}.")
        self.key = key


def answers_dir(settings: Settings) -> Path:
    """The folder of a workspace's cached answers."""
    return settings.workspace / "answers"


class AnswerCache:
    """The answers in a directory, which is created on the first write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.json"

    def get(self, key: str) -> Answer | None:
        """The cached answer; None if there is none or its file is damaged."""
        try:
            fields = json.loads(self.path(key).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return _answer(fields)

    def known(self, request: Request) -> Answer | None:
        """The cached answer to the request in any of its forms, with the key of that form."""
        for form in request.forms:
            if answer := self.get(form.key):
                return replace(answer, key=form.key)
        return None

    def put(self, key: str, answer: Answer) -> None:
        """Store the answer atomically and permanently."""
        stored = {name: getattr(answer, name) for name in _STORED} | {"seconds": round(answer.seconds, 3)}
        fields = {"key": key, **stored, "asked_at": datetime.now(UTC).isoformat(timespec="seconds")}
        replace_file(self.path(key), json.dumps(fields, ensure_ascii=False, indent=1).encode())


def _answer(fields: Any) -> Answer | None:
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        return None

    def number(name: str) -> float:
        value = fields.get(name)
        return value if isinstance(value, int | float) else 0

    return Answer(
        fields["text"],
        int(number("input_tokens")),
        int(number("output_tokens")),
        None if fields.get("cost_usd") is None else float(number("cost_usd")),
        float(number("seconds")),
        cached=True,
        truncated=fields.get("truncated") is True,
        model=str(fields.get("model") or ""),
    )
