"""The hook that an agent calls when a session starts or is compacted: prints the answer of `memory`, or nothing.

python -I -S memory_pipeline_hook.py WORKSPACE MEMORY AGENT EVENT < payload.json

It never delays a session: after `SECONDS` it ends in any case, and the process group of `memory` is killed. It fails
open: exit code 0 and no output on any error, with one line in `connections/hooks.log` of the workspace. It does not
import the package, as that alone may exceed the limit.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_pipeline.agents.kit.hook_output import INSIDE, NoAnswerError, marked, read_payload, run
else:
    sys.path.insert(0, str(Path(__file__).parent))  # which `-I` leaves out
    from hook_output import INSIDE, NoAnswerError, marked, read_payload, run

BEGAN = time.monotonic()
SECONDS = 0.95
"""Time limit in seconds from here on; with the start of Python the total is below a second."""
MAX_BYTES = 65_536
"""Maximum bytes of an answer; a briefing has less than a tenth."""
STARTING = 0.4
"""Seconds reserved for starting `memory`; it may use the rest."""
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_child: subprocess.Popen[bytes] | None = None


def _arguments(agent: str, event: str, payload: dict[str, Any]) -> list[str]:
    """The arguments of the `memory` call. Raises `NoAnswerError` for a compaction without a session."""
    if event == "start":
        return ["context", "--project", str(payload.get("cwd") or Path.cwd())]
    session = payload.get("transcript_path") or payload.get("session_id")
    if not session:
        raise NoAnswerError("the agent did not say which session is compacted")
    left = max(0.1, BEGAN + SECONDS - time.monotonic() - STARTING)
    arguments = ["context", "--compaction", f"--seconds={left:.2f}", *(["--json"] if agent == "pi" else [])]
    for option in ("first_kept", "tokens_before"):
        if option in payload:
            arguments.append(f"--{option.replace('_', '-')}={payload[option]}")
    return [*arguments, "--", str(session)]


def _answer(workspace: str, memory: str, agent: str, event: str) -> str:
    """The answer in the form that the agent reads. Raises `NoAnswerError`."""
    text = _output(workspace, [memory, *_arguments(agent, event, read_payload())])
    return _formatted(agent, event, text) if text else ""


def _output(workspace: str, command: list[str]) -> str:
    """The output of the command. Raises `NoAnswerError`."""
    global _child
    environment = {**os.environ, "MEMORY_WORKSPACE": workspace}
    try:
        _child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=workspace,  # not the project's folder, from which Python might import modules
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise NoAnswerError(f"{command[0]}: {(error.strerror or 'cannot be started').lower()}") from None
    assert _child.stdout and _child.stderr
    out = _child.stdout.read(MAX_BYTES + 1)  # this and what follows is limited by the alarm
    if len(out) > MAX_BYTES:
        raise NoAnswerError(f"the answer is longer than {MAX_BYTES} bytes")
    err, code = _child.stderr.read(MAX_BYTES)[-4096:], _child.wait()
    said = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    if code or (said and not out.strip()):
        raise NoAnswerError(f"exit code {code}: {said[-1][:300] if said else 'no message'}")
    try:
        text = out.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise NoAnswerError("the answer is not UTF-8") from None
    if _NOT_TEXT.search(text):
        raise NoAnswerError("the answer is not text")
    return text


def _formatted(agent: str, event: str, text: str) -> str:
    """The answer, marked as data, in the agent's format. Raises `NoAnswerError`."""
    if agent == "pi" and event == "compaction":
        return json.dumps(_replacing_summary(text))
    if agent in ("codex", "gemini") or (agent == "claude" and event == "start"):
        return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": marked(text)}})
    return marked(text)


def _replacing_summary(text: str) -> dict[str, Any]:
    """The summary that replaces pi's own, if it is complete, as pi then makes none. Raises `NoAnswerError`."""
    try:
        found = json.loads(text)
        if not found["details"]["isComplete"]:
            raise NoAnswerError("there was no time to observe the whole session, so pi makes its own summary")
        return {**found, "summary": marked(str(found["summary"]))}
    except (ValueError, KeyError, TypeError):
        raise NoAnswerError("the summary is not as expected") from None


def _kill_child() -> None:
    if _child is not None:
        with suppress(OSError):
            os.killpg(_child.pid, signal.SIGKILL)


if __name__ == "__main__":
    if not os.environ.get(INSIDE) and len(sys.argv) == 5:
        workspace, memory, agent, event = sys.argv[1:]
        run(workspace, agent, event, SECONDS, lambda: _answer(workspace, memory, agent, event), _kill_child)
