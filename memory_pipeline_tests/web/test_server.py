"""`memory open` as a process: it says its address, ends with Ctrl-C or after silence, and records what was held."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.web.server import PageServer, PortTakenError
from memory_pipeline_tests.rows import workspace
from memory_pipeline_tests.web.serving import Served, no_report
from memory_pipeline_tests.web.test_review_session import LINES, filled, p, status

SECONDS = 300


def test_ctrl_c_ends_it_and_records_what_was_held(tmp_path: Path) -> None:
    _, lake = filled(tmp_path / "workspace")
    env = os.environ | {
        "HOME": f"{tmp_path}",
        "MEMORY_WORKSPACE": f"{tmp_path / 'workspace'}",
        "MEMORY_TIMEZONE": "UTC",
    }
    command = [sys.executable, "-m", "memory_pipeline.cli.main", "open", "--no-browser"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        try:
            assert running.stderr
            told = running.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", told)
            assert found, told
            page = Served(found[0], None)  # type: ignore[arg-type]
            assert page.change("/review", do="approve", id=p(1)).status == 303
            running.send_signal(signal.SIGINT)
            rest = running.stderr.read()
            assert running.wait(SECONDS) == 0
        finally:
            running.kill()
    assert rest == "The page is closed.\n"
    assert status(lake)[p(1)] == APPROVED
    assert LINES[1] in (tmp_path / "workspace" / "MEMORY.md").read_text("utf-8")


def test_silence_ends_it(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    with PageServer(settings, lambda: no_report(settings), silence=0.05) as server:
        assert server.run()


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"^Port {port} cannot be used: .*\. Name another with --port\.$"):
            PageServer(settings, lambda: no_report(settings), port=port)
