"""Where each tool keeps what it remembers, and what of it is read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from memory_pipeline.operations.importing.lines import Importer, MemoryFile
from memory_pipeline.operations.importing.sources import SOURCES, read_path, read_sources
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import read_from, workspace

RULE = "Never fire the kiln above cone six."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "CLAUDE_MEM_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def importer(tmp_path: Path) -> Importer:
    return Importer(Workspace(*workspace(tmp_path / "ws")))


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(importer: Importer, source: str, folder: Path) -> list[MemoryFile]:
    return read_sources(importer, [source], folder)


def told(files: list[MemoryFile]) -> list[tuple[int, str, str | None]]:
    return [(line.number, line.text, line.project) for file in files for line in file.lines]


def memory_of(home: Path, cwd: str, config: str = ".claude") -> Path:
    return home / config / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd) / "memory"


def test_claude_codes_folder_is_of_the_project_that_its_transcripts_name(home: Path, importer: Importer) -> None:
    memory = memory_of(home, "/srv/my-kiln")
    write(memory / "MEMORY.md", f"# Memory\n- [Cones](cones.md) — which ones\n- {RULE}\n")
    write(memory / "cones.md", "Cones lie in the left drawer.\n")
    write(memory.parent / "a.jsonl", json.dumps({"type": "user", "cwd": "/srv/my-kiln"}, separators=(",", ":")))
    files = read(importer, "claude-code", home)
    assert told(files) == [(1, "Cones lie in the left drawer.", "my-kiln"), (3, RULE, "my-kiln")]
    assert {line.origin for file in files for line in file.lines} == {"Claude Code's memory"}


def test_without_transcripts_the_folder_is_known_from_sessions_or_by_its_name(home: Path, importer: Importer) -> None:
    read_from(importer.workspace.lake, "/s.jsonl", "my-kiln", "/srv/my-kiln")
    write(memory_of(home, "/srv/my-kiln") / "a.md", RULE)
    write(memory_of(home, f"{home}/tiles") / "a.md", "Tiles are baked at noon.")
    assert {project for _, _, project in told(read(importer, "claude-code", home))} == {"my-kiln", "tiles"}


def test_the_type_of_a_memory_says_where_it_holds(home: Path, importer: Importer) -> None:
    memory = memory_of(home, f"{home}/kiln")
    write(memory / "a.md", "---\nname: a\nmetadata:\n  type: user\n---\nAna has fired kilns for ten years.\n")
    write(memory / "b.md", "---\ntype: feedback\n---\nIntegration tests hit a real kiln.\n\n**Why:** A mock burnt.\n")
    lines = [line for file in read(importer, "claude-code", home) for line in file.lines]
    settings = importer.workspace.settings
    assert [(line.project, line.section(settings)) for line in lines] == [(None, "User"), ("kiln", "Hard Rules")]


def test_of_a_memory_in_prose_the_description_is_the_line(home: Path, importer: Importer) -> None:
    text = "---\ndescription: Tests of the kiln need a real oven\ntype: feedback\n---\nOne of it.\n\nTwo of it.\n"
    write(memory_of(home, f"{home}/kiln") / "a.md", text)
    assert told(read(importer, "claude-code", home)) == [(2, "Tests of the kiln need a real oven", "kiln")]


def test_folders_that_were_moved_are_found(home: Path, importer: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    write(memory_of(home, "/srv/kiln", "one") / "a.md", RULE)
    write(memory_of(home, "/srv/kiln", "two") / "a.md", "Tiles are baked at noon.")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{home}/one,{home}/two")
    assert len(told(read(importer, "claude-code", home))) == 2
    write(home / "cx/memories/memory_summary.md", f"v1\n\n## User preferences\n- {RULE}\n")
    monkeypatch.setenv("CODEX_HOME", f"{home}/cx")
    assert told(read(importer, "codex", home)) == [(4, RULE, None)]
    write(home / "g/.gemini/GEMINI.md", f"## Gemini Added Memories\n- {RULE}\n")
    monkeypatch.setenv("GEMINI_CLI_HOME", f"{home}/g")
    assert told(read(importer, "gemini", home)) == [(2, RULE, None)]


def test_of_codex_what_holds_is_read_and_no_list_of_tasks(home: Path, importer: Importer) -> None:
    text = """\
# Task Group: kiln
scope: firing the kiln
applies_to: cwd=/srv/kiln; reuse_rule=always

## Task 1: fire the first load

### keywords
- kiln, load, cones

## User preferences
- when firing, the user asked: "read the log first" -> read the log first [Task 1][Task 2]

# Task Group: anything else
applies_to: cwd=several; reuse_rule=always

## Reusable knowledge
- The board resets while its boot pin is low. [Task 1]
"""
    write(home / ".codex/memories/MEMORY.md", text)
    write(home / ".codex/memories/raw_memories.md", f"- {RULE}\n")
    write(home / ".codex/memories/rollout_summaries/a.md", f"- {RULE}\n")
    files = read(importer, "codex", home)
    assert told(files) == [
        (11, 'when firing, the user asked: "read the log first" -> read the log first', "kiln"),
        (17, "The board resets while its boot pin is low.", None),
    ]
    lines, settings = files[0].lines, importer.workspace.settings
    assert [line.section(settings) for line in lines] == ["User", "Patterns"]


def test_of_gemini_only_what_it_was_told_to_remember(home: Path, importer: Importer) -> None:
    text = f"# Mine\n- Speak English with me.\n\n## Gemini Added Memories\n- {RULE}\n\n## More\n- And French.\n"
    write(home / ".gemini/GEMINI.md", text)
    (file,) = read(importer, "gemini", home)
    assert told([file]) == [(5, RULE, None)]


def test_of_a_project_each_real_file_is_read_once(home: Path, importer: Importer, tmp_path: Path) -> None:
    top = tmp_path / "kiln"
    (top / ".git").mkdir(parents=True)
    write(top / "AGENTS.md", f"- {RULE}\n")
    (top / "CLAUDE.md").symlink_to("AGENTS.md")
    write(top / "src" / "deep" / "a.py", "")
    for files in (read(importer, "project", top / "src" / "deep"), read_path(importer, top)):
        assert [file.path for file in files] == [top / "AGENTS.md"]
        assert [(line.text, line.cwd) for line in files[0].lines] == [(RULE, str(top))]


def test_another_memory_of_ours_keeps_its_sections_and_projects(importer: Importer, tmp_path: Path) -> None:
    text = "# Memory\n\n## Patterns\n- (2025-01-02) Never use npm here. (project: kiln) <!-- p-20250102-001 -->\n"
    (file,) = read_path(importer, write(tmp_path / "MEMORY.md", text))
    (line,) = file.lines
    assert (line.text, line.project) == ("Never use npm here.", "kiln")
    assert line.section(importer.workspace.settings) == "Patterns"


def test_no_secret_is_in_what_was_read(importer: Importer, tmp_path: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabcdefghijklmnop\n-----END RSA PRIVATE KEY-----"
    text = f"- Deploy with {key}\n- Log in with AKIAIOSFODNN7EXAMPLE.\n- {RULE}\n"
    (file,) = read_path(importer, write(tmp_path / "notes.md", text))
    assert told([file]) == [(5, RULE, None)]


BAD = {
    "utf16.md": ("Use pnpm.".encode("utf-16"), "is UTF-16; save it as UTF-8."),
    "binary.md": (b"\x00\x01\x02", "is not a text file"),
    "latin.md": ("Für Öfen.".encode("latin-1"), "is not UTF-8 (line 1)"),
    "huge.md": (b"- Use pnpm.\n" * 50_000, "has 600,000 bytes"),
    "empty.md": (b"\n", "is empty"),
}


def test_what_cannot_be_read_is_a_sentence_and_the_rest_is_read(home: Path, importer: Importer) -> None:
    memory = memory_of(home, "/srv/kiln")
    write(memory / "good.md", RULE)
    for name, (data, _) in BAD.items():
        write(memory / name, data)
    files = {file.path.name: file for file in read(importer, "claude-code", home)}
    assert [line.text for line in files["good.md"].lines] == [RULE]
    wrong = {name: files[name].problem for name, (_, said) in BAD.items() if said not in files[name].problem}
    assert not wrong


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_a_sentence(home: Path, importer: Importer) -> None:
    memory = memory_of(home, "/srv/kiln")
    write(memory / "shut.md", RULE).chmod(0)
    memory_of(home, "/srv/oven").mkdir(parents=True, mode=0)
    problems = [file.problem for file in read(importer, "claude-code", home)]
    assert [problem.partition(": ")[2] for problem in problems] == [
        "permission denied. Make it readable and run it again.",
        "permission denied. Make it readable.",
    ]


def test_without_any_of_it_nothing_is_found(home: Path, importer: Importer, tmp_path: Path) -> None:
    assert read_sources(importer, list(SOURCES), tmp_path) == []
    assert "There is no file" in read_path(importer, tmp_path / "gone.md")[0].problem
    assert "has no AGENTS.md, CLAUDE.md, GEMINI.md" in read_path(importer, tmp_path)[0].problem
