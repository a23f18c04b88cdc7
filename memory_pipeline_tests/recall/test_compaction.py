from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import NotASessionError
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.recall import compaction as compactions
from memory_pipeline.recall.compaction import compaction_summary, session_source
from memory_pipeline.settings import Settings
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.conftest import Entry, assistant, compaction, conversation, user, write_session
from memory_pipeline_tests.harnesses.test_opencode import Talk, database
from memory_pipeline_tests.rows import workspace

START = "2025-03-05T09:00:00"
SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return workspace(tmp_path / "ws", session_dirs=(tmp_path / "sessions",))[0]


def written(settings: Settings, *entries: Entry) -> Path:
    return write_session(settings.session_dirs[0] / "2025_one-two.jsonl", *entries)


def rules() -> list[Entry]:
    return [
        user("2025-03-05T09:00:00", "Never use npm here, always use pnpm for the web client.", "a"),
        assistant("2025-03-05T09:01:00", "The root cause was a stale lock file in the build folder.", "b"),
        user("2025-03-05T09:30:00", "Now add paging to the list of parcels in the web client.", "c"),
        assistant("2025-03-05T09:31:00", "Should the page size be a setting?", "d"),
    ]


def test_observations_task_and_next_step(settings: Settings) -> None:
    found = compaction_summary(settings, written(settings, *rules()), tokens_before=1234)
    assert found
    assert "- 🔴 (09:00) Never use npm here, always use pnpm for the web client." in found.summary
    assert "## Current task\nNow add paging to the list of parcels in the web client." in found.summary
    assert "## Next step\nShould the page size be a setting?" in found.summary
    assert found.as_json()["tokensBefore"] == 1234
    assert found.details["isComplete"] is True
    assert found.details["observations"] == len(found.shown) > 0


def test_only_what_is_before_the_first_kept_entry(settings: Settings) -> None:
    path = written(settings, *rules())
    found = compaction_summary(settings, path, first_kept="c")
    assert found and found.as_json()["firstKeptEntryId"] == "c"
    assert "Never use npm" in found.summary
    assert "paging" not in found.summary
    with pytest.raises(NotASessionError, match="has no entry 'zzz'"):
        compaction_summary(settings, path, first_kept="zzz")
    assert compaction_summary(settings, path, first_kept="a") is None


def test_what_was_compacted_before_is_in_it_too(settings: Settings) -> None:
    more = [compaction("2025-03-05T10:00:00"), *conversation("2025-03-06T09:00:00", users=3)]
    found = compaction_summary(settings, written(settings, *rules(), *more))
    assert found
    assert "(2025-03-05 09:00) Never use npm here" in found.summary
    assert "What was said so far." not in found.summary


def test_it_grows_at_its_end(settings: Settings) -> None:
    """The part of an earlier compaction is the same by the byte: a cache that holds it goes on holding."""
    path = written(settings, *rules(), compaction("2025-03-05T10:00:00"), *conversation("2025-03-05T11:00:00", 2))
    one = compaction_summary(settings, path)
    more = user("2025-03-05T12:00:00", "Always write the change log in plain English.", "z")
    path = written(settings, *rules(), compaction("2025-03-05T10:00:00"), *conversation("2025-03-05T11:00:00", 2), more)
    two = compaction_summary(settings, path)
    assert one and two
    first = one.summary.partition("## Observed")[2].partition("the parcel service")[0].rpartition("###")[0]
    assert "Never use npm" in first
    assert first in two.summary


def test_secrets_are_redacted(settings: Settings) -> None:
    said = user(START, f"Never use the key {SECRET} outside of the vault, always fetch it anew.")
    found = compaction_summary(settings, written(settings, said, *rules()))
    assert found and SECRET not in f"{found}"
    assert "[redacted:" in found.summary


def test_within_the_budget_the_important_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactions, "SESSION_TOKENS", 500)
    settings, _ = workspace(tmp_path / "ws", session_dirs=(tmp_path / "sessions",))
    many = [
        user(f"2025-03-05T{10 + n // 30}:{n % 30:02}:00", f"Always keep the {n}th parcel in the shelf number {n * 7}.")
        for n in range(120)
    ]
    found = compaction_summary(
        settings, written(settings, *many, assistant("2025-03-05T20:00:00", "Should the page size be a setting?"))
    )
    assert found and estimate(found.summary) <= 500
    assert found.details["leftOut"] > 0
    assert found.details["observations"] > 0
    assert "## Next step\nShould the page size be a setting?" in found.summary


def test_when_the_time_is_up_there_are_the_newest_days(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    observe = ExtractiveObserver.observe

    def slow(*args: Any) -> Any:
        time.sleep(1)
        return observe(*args)

    more = [user("2025-03-06T09:00:00", "Always write the change log in plain English.", "z")]
    path = written(settings, *rules(), *more)
    monkeypatch.setattr(ExtractiveObserver, "observe", slow)
    found = compaction_summary(settings, path, seconds=0.9)
    assert found and found.details["isComplete"] is False
    assert "change log" in found.summary and "## Observed" in found.summary
    assert "Never use npm" not in found.summary.partition("## Observed")[2]
    assert compaction_summary(settings, path, seconds=0) is None


def test_a_session_by_its_id(settings: Settings) -> None:
    path = written(settings, *rules())
    assert session_source(settings, "one-two").path == f"{path}"
    assert session_source(settings, str(path)).path == f"{path}"
    with pytest.raises(NotASessionError, match="'nowhere' is neither a file"):
        session_source(settings, "nowhere")


@pytest.mark.parametrize("content", [b"", b"no json", b"\xff\x00" * 100, b'{"type": "session"}\n'])
def test_what_is_no_session(settings: Settings, content: bytes) -> None:
    path = settings.session_dirs[0] / "x.jsonl"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(NotASessionError):
        compaction_summary(settings, path)


def test_a_session_of_a_file_with_several_is_named_by_its_id(settings: Settings) -> None:
    """OpenCode keeps all of them in one database."""
    folder = settings.session_dirs[0]
    folder.mkdir(parents=True)
    talks = [
        Talk(name).user(f"Never use npm here, always use pnpm for the {name} client.").assistant("Done.")
        for name in ("ses_web", "ses_desk")
    ]
    database(folder, *talks)
    source = session_source(settings, "ses_desk")
    found = compaction_summary(settings, source)
    assert found is not None and "ses_desk client" in found.summary and "ses_web" not in found.summary
