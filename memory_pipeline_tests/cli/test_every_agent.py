"""A home in which every agent that is read has kept a session: all are found without a setting."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from memory_pipeline.harnesses import HARNESSES
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.sessions.test_golden import GOLDEN

STORAGE = ".config/Code/User/globalStorage"
DESKTOP = "Library/Application Support/Claude/local-agent-mode-sessions"
WHERE = {
    "pi": ("pi/v3-tree.jsonl", ".pi/agent/sessions/--w--/a.jsonl"),
    "claude_code": ("claude_code/2.1.jsonl", ".claude/projects/-w/a.jsonl"),
    "codex": ("codex/0.142.jsonl", ".codex/sessions/2026/03/05/rollout-a.jsonl"),
    "gemini": ("gemini/snapshot.json", ".gemini/tmp/ab12/chats/session-a.json"),
    "opencode": ("opencode/2.0.sql", ".local/share/opencode/opencode.db"),
    "copilot": ("copilot/cli.jsonl", ".copilot/session-state/a/events.jsonl"),
    "antigravity": (
        "antigravity/cli.jsonl",
        ".gemini/antigravity-cli/brain/a/.system_generated/logs/transcript.jsonl",
    ),
    "qwen_code": ("qwen_code/v0.24.jsonl", ".qwen/projects/-w/chats/a.jsonl"),
    "droid": ("droid/v2.jsonl", ".factory/sessions/-w/a.jsonl"),
    "kimi_code": ("kimi_code/wire-1.4.jsonl", ".kimi-code/sessions/w/a/wire.jsonl"),
    "kimi_cli": ("kimi_cli/wire-1.9.jsonl", ".kimi/sessions/w/a/wire.jsonl"),
    "cursor": ("cursor/2026.10.jsonl", ".cursor/projects/w/agent-transcripts/a/a.jsonl"),
    "crush": ("crush/0.90.sql", "shop/.crush/crush.db"),
    "goose": ("goose/1.25.sql", ".local/share/goose/sessions/sessions.db"),
    "cline": ("cline/3.46/saoudrizwan.claude-dev", f"{STORAGE}/saoudrizwan.claude-dev"),
    "roo": ("roo/3.52/rooveterinaryinc.roo-cline", f"{STORAGE}/rooveterinaryinc.roo-cline"),
    "kilo_code": ("cline/3.46/saoudrizwan.claude-dev", f"{STORAGE}/kilocode.kilo-code"),
    "oh_my_pi": ("pi/omp.jsonl", ".omp/agent/sessions/-w/a.jsonl"),
    "openclaw": ("pi/v2.jsonl", ".openclaw/agents/main/sessions/a.jsonl"),
    "prime": ("pi/v1.jsonl", ".prime/agent/sessions/-w/a.jsonl"),
    "cowork": ("claude_code/2.0.jsonl", f"{DESKTOP}/x/.claude/projects/-w/a.jsonl"),
    "iflow": ("claude_code/1.0.jsonl", ".iflow/projects/-w/a.jsonl"),
    "openclaude": ("claude_code/2.1-compaction.jsonl", ".openclaude/projects/-w/a.jsonl"),
    "traex": ("codex/0.34.jsonl", ".trae/cli/sessions/rollout-a.jsonl"),
    "kilo": ("opencode/2.0.sql", ".local/share/kilo/kilo.db"),
    "mimocode": ("opencode/2.0.sql", ".local/share/mimocode/mimocode.db"),
}


def test_all_are_found_without_a_setting(tmp_path: Path) -> None:
    for golden, place in WHERE.values():
        target = tmp_path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if golden.endswith(".sql"):
            with closing(sqlite3.connect(target)) as connection:
                connection.executescript((GOLDEN / golden).read_text("utf-8"))
        elif (GOLDEN / golden).is_dir():
            shutil.copytree(GOLDEN / golden, target)
        else:
            shutil.copy(GOLDEN / golden, target)
    listed = {"projects": [{"path": str(tmp_path / "shop"), "data_dir": ".crush"}]}
    (tmp_path / ".local/share/crush").mkdir(parents=True)
    (tmp_path / ".local/share/crush/projects.json").write_text(json.dumps(listed))

    told = memory(tmp_path, "status", "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["session_files"].keys() == WHERE.keys() == {harness.name for harness in HARNESSES}
    assert found["files_not_read"] == {}
    lines = memory(tmp_path, "status").stdout.splitlines()
    for name, sessions in found["session_files"].items():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1] == f"{sessions},", line
