"""Real agents and their tool calls: a failure is told its cure, and a call that a rule denies is not run.

The scripted server sees what the model would see. Codex runs hooks that nobody has trusted only when it is told to.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from memory_pipeline.agents import hooks
from memory_pipeline.agents.agents import BY_NAME
from memory_pipeline.agents.kit.tool_calls import signature
from memory_pipeline_tests.real_agents.model_server import Say
from memory_pipeline_tests.real_agents.test_connections import Connected, connected  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

ERROR = "cat: /nowhere/kiln.txt: No such file or directory"
CURE = "`cat` fails with “No such file”: run `make kiln` first."
RULE = "Never run `touch`."


def know(connected: Connected) -> None:  # noqa: F811
    folder = connected.settings.actions_dir
    folder.mkdir(parents=True)
    cwd = str(connected.harness.cwd)
    named = {"folders": {cwd: "p-1.json"}}
    (folder / f"{zlib.crc32(cwd.encode()):08x}.json").write_text(json.dumps(named))
    rule: dict[str, Any] = {"id": "p-1", "line": RULE, "evidence": "approved 2026-03-02", "mode": "deny"}
    hint = {"id": "f-1", "line": CURE, "evidence": "2 sessions", "words": ["cat"]}
    known = {
        "rules": [{**rule, "check": {"kind": "command", "commands": [["touch"]]}}],
        "before": [],
        "after": {signature(ERROR): [hint]},
    }
    (folder / "p-1.json").write_text(json.dumps(known))


def requests_after(connected: Connected, command: str) -> str:  # noqa: F811
    """What the model is sent after it has called the shell with this command."""
    model = connected.harness.model
    model.script(connected.harness.shell(command), Say("Understood."))
    output = connected.harness.prompt("Look after the kiln.", again=False)
    assert not model.turns, output
    return json.dumps(model.requests[-1], ensure_ascii=False)


def test_a_failure_is_told_its_cure_and_a_denied_command_is_not_run(connected: Connected) -> None:  # noqa: F811
    know(connected)
    agent = BY_NAME[connected.name]
    hooks.install(connected.settings, agent, actions=True)
    assert CURE in requests_after(connected, "cat /nowhere/kiln.txt")
    fired = connected.harness.cwd / "fired"
    assert RULE in requests_after(connected, f"touch {fired}")
    assert not fired.exists()
    (connected.settings.actions_dir / "p-1.json").write_text("{")  # damaged: the call goes on
    requests_after(connected, f"touch {fired}")
    assert fired.exists()
    hooks.remove(connected.settings, agent)
    assert CURE not in requests_after(connected, "cat /nowhere/kiln.txt")
