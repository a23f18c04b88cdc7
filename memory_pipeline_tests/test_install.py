"""`deploy/install.py` hands pip's settings to uv, leaves torch out where no extra asks for it, and ends with pip;
`deploy/licences.csv` lists what it installs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from memory_pipeline_tests.cases import each

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
SCRIPT = DEPLOY / "install.py"
FAKE = """#!/bin/sh
echo "$(basename "$0") $* ${UV_INDEX:-} ${UV_OVERRIDE:-} ${UV_TORCH_BACKEND:-}" >> "$LOG"
case "$*" in *config*) echo "global.extra-index-url='https://a/simple https://b/simple'";; esac
case "$(basename "$0") $*" in $FAILS) exit 1;; esac
"""


def called(tmp_path: Path, wanted: str, fails: str) -> tuple[list[str], str]:
    """What the script called in an environment whose programs only log their calls, and what it printed."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (tmp_path / "log").unlink(missing_ok=True)
    for name in ("python", "uv"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(stat.S_IRWXU)
    code = f"import runpy, sys; sys.executable = {f'{folder}/python'!r}; sys.argv = ['', {wanted!r}]"
    command = [sys.executable, "-c", f"{code}; runpy.run_path({f'{SCRIPT}'!r}, run_name='__main__')"]
    env = {"PATH": os.environ["PATH"], "LOG": f"{tmp_path}/log", "FAILS": fails}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in (tmp_path / "log").read_text().splitlines() if " config " not in line], done.stderr


@each(
    ("wanted", "fails", "last", "printed"),
    [
        (".[all]", "", "uv pip install --quiet", ""),
        (".[dev]", "", "uv pip install --quiet", ""),
        (".[dev]", "*--torch-backend*", "uv pip install --quiet", "PyTorch's index does not answer"),
        (".[all]", "uv*", "python -m pip", "so pip does, with torch"),
        (".[all]", "*txt uv*", "python -m pip", "so pip does, with torch"),
    ],
)
def test_uv_installs_it_else_pip(wanted: str, fails: str, last: str, printed: str, tmp_path: Path) -> None:
    calls, said = called(tmp_path, wanted, fails)
    assert calls[-1].startswith(last) and f"-e {wanted}" in calls[-1]
    assert printed in said and bool(said) == bool(printed)
    if last.startswith("uv"):
        assert "https://a/simple https://b/simple" in calls[-1]
        assert ("deploy/without-torch.txt" in calls[-1]) == (wanted == ".[all]")
        assert calls[-1].endswith(" cpu") == (wanted == ".[dev]" and not printed)


def test_the_settings_of_pip_are_those_of_uv() -> None:
    script = SCRIPT.read_text("utf-8").partition("def install_by_uv")[0]
    names: dict[str, object] = {"__file__": f"{SCRIPT}"}
    exec(compile(script, f"{SCRIPT}", "exec"), names)
    listed = (
        "global.index-url='https://files/simple'\n:env:.find-links='/a /b'\ninstall.find-links='/c'\n"
        "global.cert='/ca.pem'\nglobal.no-color='true'\ndownload.index-url='https://other'\n"
    )
    told = names["variables_of_uv"](listed, {"SSL_CERT_FILE": "/mine.pem"})  # type: ignore[operator]
    assert told == {"UV_DEFAULT_INDEX": "https://files/simple", "UV_FIND_LINKS": "/a,/b"}


def test_the_licence_of_every_installed_package_is_listed() -> None:
    """Without versions, so that a new lock seldom changes the list; markers may leave out some of it."""
    command = [sys.executable, f"{DEPLOY / 'licences.py'}"]
    here = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()
    assert len(here) > 100 and not any(line.startswith(("torch,", "transformers,")) for line in here)
    assert set(here) <= set((DEPLOY / "licences.csv").read_text("utf-8").splitlines())
