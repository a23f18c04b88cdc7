"""The `memory` command as a person runs it: a process of its own with an empty home."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def memory(home: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `memory ARGS` and return what it printed and its exit code. Nothing of this machine's home is seen."""
    home.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "memory_pipeline.cli.main", *args],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", **(env or {})},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def memory_json(home: Path, *args: str, env: Mapping[str, str] | None = None) -> Any:
    """The parsed output of `memory ARGS --json`, which must succeed."""
    result = memory(home, *args, "--json", env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
