"""The collections of sessions and questions that `benchmarks/recall.py` searches."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import BENCH, MORE, ROOT
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

QUESTIONS = ROOT / "benchmarks/recall_questions/entireio_cli.jsonl"


@dataclass(frozen=True)
class Collection:
    """The sessions of one person, searched on their own, and the questions on them.

    A message has id, session, said_at, speaker and text; a question has query_id, category, query and gold_sessions.
    """

    name: str
    messages: Sequence[dict[str, Any]]
    questions: Sequence[dict[str, Any]]


def said_at(text: str) -> datetime:
    """The time of a message in UTC, from ISO or LoCoMo's '1:56 pm on 8 May, 2023'; noon where only a day is known.

    Raises ValueError.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y")
    if moment.tzinfo:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment.replace(hour=12) if len(text) == len("2025-01-15") else moment


def with_speaker(message: dict[str, Any]) -> str:
    """The text of a message, with the name of who said it where that is a person and no role."""
    named = message["speaker"] not in ("user", "assistant")
    return f"{message['speaker']}: {message['text']}" if named else f"{message['text']}"


def of_bench(dataset: str) -> Iterator[Collection]:
    """The collections of ../shared/bench. Raises CalledProcessError."""

    def rows(what: str) -> list[dict[str, str]]:
        command = [sys.executable, f"{BENCH / 'retrieval.py'}", what, dataset]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in printed.splitlines()]

    messages, questions = rows("corpus"), rows("queries")
    for name in dict.fromkeys(message["collection"] for message in messages):
        yield Collection(
            name,
            [message for message in messages if message["collection"] == name],
            [question for question in questions if question["collection"] == name],
        )


def of_project() -> Iterator[Collection]:
    """The sessions of entireio/cli, what users and assistants said in them, with the questions that have an answer."""
    with tempfile.TemporaryDirectory() as made:
        sessions, workspace = Path(made) / "sessions", Path(made) / "workspace"
        sessions.mkdir()
        for path in MORE.glob("*/entireio-cli__*"):
            (sessions / path.name).symlink_to(path)
        settings = Settings(workspace=workspace, timezone="UTC", default_session_dirs=False, session_dirs=(sessions,))
        lake = Lake.from_settings(settings)
        stage = SessionsStage(Workspace(settings, lake), Catalogue(lake, settings), datetime.now(UTC))
        stage.look()
        for day in stage.catalogue.days():
            bring_up_to_date(stage, lake, day)
        said = lake.read("messages").filter(pl.col("role").is_in(["user", "assistant"]), pl.col("text") != "")
        messages = [
            {
                "id": row["message_id"],
                "session": row["session_id"],
                "said_at": row["said_at"].isoformat(),
                "speaker": row["role"],
                "text": row["text"],
            }
            for row in said.sort("said_at", "source_line").iter_rows(named=True)
        ]
    asked = [json.loads(line) for line in QUESTIONS.read_text("utf8").splitlines()]
    questions = [
        {
            "query_id": question["id"],
            "category": question["kind"],
            "query": question["question"],
            "gold": question["messages"],
            "gold_sessions": question["sessions"],
        }
        for question in asked
        if question["sessions"]
    ]
    yield Collection("entireio/cli", messages, questions)


DATASETS: dict[str, tuple[Path, Callable[[], Iterator[Collection]]]] = {
    "devmembench": (BENCH, lambda: of_bench("devmembench")),
    "locomo": (BENCH, lambda: of_bench("locomo")),
    "entireio_cli": (QUESTIONS, of_project),
}
"""How each dataset is loaded, and what has to be there."""
