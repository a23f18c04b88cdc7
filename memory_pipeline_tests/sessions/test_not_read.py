"""What is listed as not read, and what is not: the files that agents keep beside their sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_pipeline import harnesses
from memory_pipeline.cli import summary
from memory_pipeline.harnesses.model import Source
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions import reading
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, owner_of_side_file
from memory_pipeline.sessions.file_rows import not_read
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import conversation, write_session

SIDE_FILES = {
    "claude_code": """
        -srv-api/sessions-index.json
        -srv-api/1111/subagents/agent-abc.meta.json
        -srv-api/1111/subagents/workflows/wf_1/journal.jsonl
        -srv-api/1111/subagents/journal.jsonl
        -srv-api/1111/workflows/wf_1.json
        -srv-api/1111/tool-results/mcp-1.json
        history.jsonl
        todos/1111-agent-2.json
        """,
    "cowork": "local-agent-mode-sessions/1/2/local_3.json",
    "codex": "session_index.jsonl auth.json models_cache.json .codex-global-state.json",
    "gemini": "2f/logs.json 2f/checkpoints/read-1.json 2f/logs/session-1.jsonl projects.json oauth_creds.json",
    "pi": "settings.json models.json 1.trajectory.jsonl",
    "openclaw": "agents/main/sessions/sessions.json",
    "opencode": "mcp-auth.json",
}


def read(folder: Path) -> Lake:
    """What is stored of the folder."""
    settings = load_settings()
    catalogue = Catalogue(Lake(settings.lake_dir), settings)
    catalogue.refresh(find_sources([folder]))
    return catalogue.lake


def test_side_files_of_agents_are_not_listed(tmp_path: Path) -> None:
    paths = [tmp_path / "home" / path for names in SIDE_FILES.values() for path in names.split()]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"version": 1}))
    (other := tmp_path / "home/unknown.json").write_text('{"version": 1}')
    write_session(tmp_path / "home/good.jsonl", *conversation("2025-03-05T09:00:00"))
    lake = read(tmp_path / "home")
    told = {"files_not_read": {str(other): "It is JSON, but not a session of a known coding agent."}}
    assert not_read(lake) == told | {"records_not_read": []}
    owners = dict(lake.read("files").drop_nulls("side_file_of").select("path", "side_file_of").iter_rows())
    assert owners.keys() == set(map(str, paths))


def test_a_session_with_the_name_of_a_side_file_is_read(tmp_path: Path) -> None:
    for path in ("history.jsonl", "x/tool-results/1.jsonl", "x/subagents/workflows/wf_1/journal.jsonl"):
        write_session(tmp_path / path, *conversation("2025-03-05T09:00:00"), session_id=path.replace("/", "-"))
    files = read(tmp_path).read("files")
    assert files["messages"].to_list() == [10, 10, 10]
    assert files["side_file_of"].null_count() == 3


def test_every_pattern_of_a_side_file_names_its_agent() -> None:
    wrong = []
    for harness in harnesses.HARNESSES:
        for pattern in harness.side_files:
            source = Source(f"/home/ada/{pattern.replace('*', 'x')}", agent=harness.name)
            if (owner := owner_of_side_file(source)) != harness.name:
                wrong.append((harness.name, pattern, owner))
    assert not wrong


@each("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_a_sentence(encoding: str, tmp_path: Path) -> None:
    path = write_session(tmp_path / "a.jsonl", *conversation("2025-03-05T09:00:00"))
    path.write_bytes(path.read_text().replace("\n", "\r\n").encode(encoding))
    (reason,) = not_read(read(tmp_path))["files_not_read"].values()
    assert reason == "The file is UTF-16, which no agent writes; convert it to UTF-8 to have it read."


def test_a_name_with_control_characters_is_read_and_told_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a\nb\x1b[31m"
    write_session(folder / "good\n.jsonl", *conversation("2025-03-05T09:00:00"))
    (folder / "bad\n\t.jsonl").write_text("{}")
    lake = read(tmp_path)
    assert lake.read("files")["messages"].sum() == 10
    summary.say_not_read(not_read(lake))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[::2]] == [["files", "not", "read", "1"], ["records", "not", "read", "0"]]
    assert r"/a\nb\x1b[31m/bad\n\t.jsonl: It is JSON, but not a session" in lines[1]


def test_a_first_line_that_is_too_long_does_not_hide_what_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_HEAD_BYTES", 1000)
    path = write_session(tmp_path / "a.jsonl", *conversation("2025-03-05T09:00:00"))
    path.write_text("\n".join(['{"type":"session","id":"' + "x" * 2500 + '"}', *path.read_text().splitlines()[1:]]))
    assert read(tmp_path).read("files")["messages"].to_list() == [10]
    (tmp_path / "b.jsonl").write_text("x" * 5000)
    assert list(not_read(read(tmp_path))["files_not_read"]) == [str(tmp_path / "b.jsonl")]
