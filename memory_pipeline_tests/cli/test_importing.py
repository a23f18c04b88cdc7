"""`memory import`: what other tools remember is shown, offered once, and decided on like everything else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.terminal import Terminal

RULE = "Never fire the kiln above cone six."
NO_MOCKS = "Tests must hit a real kiln, not mocks."
TOKEN = "ghp_16C7e42F292c6912" + "E7710c838347Ae178B4a"  # in two parts, or a scanner of this repository finds it


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with every source, and the project kiln in it."""
    home = tmp_path / "home"
    files = {
        ".claude/projects/-srv-kiln/memory/MEMORY.md": "- [Mocks](mocks.md) — of the kiln\n",
        ".claude/projects/-srv-kiln/memory/mocks.md": f"---\ntype: feedback\n---\n{NO_MOCKS}\n",
        ".claude/projects/-srv-kiln/s.jsonl": '{"type":"user","cwd":"/srv/kiln"}\n',
        ".codex/memories/memory_summary.md": "v1\n\n## User preferences\n- Read the log before you flash a board.\n",
        ".gemini/GEMINI.md": f"## Gemini Added Memories\n- Answer in short sentences.\n- The token is {TOKEN}\n",
        "kiln/AGENTS.md": f"# Kiln\n\n- {RULE}\n- {NO_MOCKS}\n\n```sh\nmake\n```\n",
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (home / "kiln/.git").mkdir()
    (home / ".claude-mem").mkdir()
    with closing(sqlite3.connect(home / ".claude-mem/claude-mem.db")) as connection:
        connection.execute("CREATE TABLE observations (id INTEGER PRIMARY KEY, project, type, title, subtitle)")
        row = ("kiln", "decision", "Chose SQLite over a flat file", "Firings are queried by date.")
        connection.execute("INSERT INTO observations (project, type, title, subtitle) VALUES (?, ?, ?, ?)", row)
        connection.commit()
    return home


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(workspace=tmp_path / "ws", timezone="UTC", default_session_dirs=False)


def env_of(settings: Settings) -> dict[str, str]:
    return {"MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC"}


@pytest.fixture(autouse=True)
def in_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home / "kiln")


def contents(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_from_every_memory_to_one_line_of_ours_and_nothing_twice(home: Path, settings: Settings) -> None:
    env, before = env_of(settings), contents(home)
    found = memory(home, "import", "--yes", env=env)
    assert found.returncode == 0, found.stderr
    assert "5 lines offered, 5 of them in" in found.stdout
    assert "2 lines, 1 new, 1 known (1 above)" in found.stdout
    review = settings.review_file.read_text()
    assert "from Claude Code's memory, ~/.claude/projects/-srv-kiln/memory/mocks.md:4 · project: kiln" in review
    assert "from Codex's memory, ~/.codex/memories/memory_summary.md:4" in review
    assert "from claude-mem, ~/.claude-mem/claude-mem.db:1 · project: kiln" in review
    assert not settings.memory_file.exists()
    assert TOKEN not in found.stdout + review
    stored = b"".join(path.read_bytes() for path in settings.workspace.rglob("*") if path.is_file())
    assert TOKEN.encode() not in stored

    (mark,) = [row for row in review.splitlines() if row.endswith(RULE)]
    settings.review_file.write_text(review.replace(mark, mark.replace("[ ]", "[x]")))
    again = memory(home, "import", "--yes", env=env)
    assert "Nothing is new." in again.stdout
    memory(home, "review", "--list", env=env)
    own = mark.split("`")[1]
    assert f"{RULE} (project: kiln) <!-- {own} -->" in settings.memory_file.read_text()
    why = memory(home, "why", own, env=env).stdout
    assert f"{home}/kiln/AGENTS.md:3" in why

    settings.memory_file.write_text("# Memory\n")
    assert memory_json(home, "import", "--yes", env=env)["offered"] == 0
    assert Lake(settings.lake_dir).read("remembered").height == 5
    assert contents(home) == before


def test_one_source_or_one_file_alone_may_be_named(home: Path, settings: Settings) -> None:
    env = env_of(settings)
    found = memory_json(home, "import", "--from", "gemini", "--from", "codex", "--dry-run", env=env)
    assert [file["source"] for file in found["files"]] == ["gemini", "codex"]
    assert (found["new"], found["offered"]) == (2, 0)
    found = memory_json(home, "import", "AGENTS.md", "--dry-run", env=env)
    assert [file["lines"][0]["text"] for file in found["files"]] == [RULE]
    assert not settings.review_file.exists()
    assert Lake(settings.lake_dir).read("remembered").is_empty()


def test_what_cannot_be_read_is_told_and_the_rest_is_offered(home: Path, settings: Settings) -> None:
    (home / ".gemini/GEMINI.md").write_text("## Gemini Added Memories\n- Use pnpm.\n", "utf-16")
    (home / ".claude-mem/claude-mem.db").write_bytes(b"no database" * 100)
    found = memory(home, "import", "--yes", env=env_of(settings))
    assert found.returncode == 0
    assert "GEMINI.md is UTF-16; save it as UTF-8." in found.stdout
    assert "claude-mem.db: It is not an SQLite database." in found.stdout
    assert "3 lines offered" in found.stdout


def test_nobody_can_be_asked_without_a_terminal(home: Path, settings: Settings) -> None:
    found = memory(home, "import", env=env_of(settings))
    assert found.returncode == 2
    assert "Nothing was offered. There is no terminal to ask for confirmation;" in found.stderr
    assert Lake(settings.lake_dir).read("remembered").is_empty()


def test_at_a_terminal_it_asks_before_it_stores(home: Path, settings: Settings) -> None:
    with Terminal(home, "import", "--from", "codex", env=env_of(settings)) as terminal:
        terminal.sees("4: Read the log before you flash a board.")
        terminal.sees("REVIEW.md shows at most 10 imported lines at once")
        terminal.sees("Offer 1 line for review?")
        terminal.press("n\n")
        terminal.sees("Nothing was offered.")
        assert terminal.ends() == 0
    assert Lake(settings.lake_dir).read("remembered").is_empty()


def test_a_wrong_call_says_what_was_expected(home: Path, settings: Settings) -> None:
    cases = {
        ("--from", "cursor"): "expected one of claude-code, codex, gemini, claude-mem, project.",
        ("--json",): "add --yes to offer the lines, or --dry-run to see them.",
        ("a.md", "--from", "codex"): "Give either PATH or --from",
    }
    told = {args: memory(home, "import", *args, env=env_of(settings)) for args in cases}
    assert [found.returncode for found in told.values()] == [2] * len(cases)
    assert not [args for args, said in cases.items() if said not in told[args].stderr]


def test_without_any_memory_it_says_so(tmp_path: Path, settings: Settings) -> None:
    found = memory(tmp_path / "empty", "import", "--from", "codex", env=env_of(settings))
    assert found.stdout.startswith("Nothing was found")
