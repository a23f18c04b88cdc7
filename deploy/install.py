"""Installation of packages into the virtual environment that runs this, by uv where PyPI gives it, else by pip.

    .venv/bin/python deploy/install.py REQUIREMENT ...

The versions are those of constraints.txt. uv does not read the settings of pip, so those that name sources and
certificates are handed over to it. For an extra with torch, its CPU build is taken where PyTorch's index answers.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = [f"{Path(sys.executable).parent / 'uv'}", "pip", "install", "--quiet", "--python", sys.executable]
WITH_TORCH = ("dev", "encoders")
VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
"""Settings of pip, with uv's variable and what separates its values."""


def variables_of_uv(listed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What uv is to be told, by the output of `pip config list`; a variable of uv that is set stays as it is."""
    found: dict[str, str] = {}
    rank = {"global": 0, "install": 1, ":env:": 2}
    settings = [line.partition("=")[::2] for line in listed.splitlines() if "=" in line]
    for key, value in sorted(settings, key=lambda setting: rank.get(setting[0].rpartition(".")[0], -1)):
        section, _, name = key.rpartition(".")
        if section in rank and name in VARIABLES:
            variable, separator = VARIABLES[name]
            found[variable] = separator.join(ast.literal_eval(value).split())
    if "UV_INDEX" in found:  # like pip, which takes the best of all indexes
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in found.items() if name not in environment}


def install_by_uv(wanted: list[str]) -> bool:
    """Whether uv could be installed and has installed everything."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    environment = dict(os.environ) | variables_of_uv(listed, os.environ)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):  # else every command would compile all that it imports
        environment["UV_COMPILE_BYTECODE"] = "true"
    if subprocess.run([*PIP, "install", "--quiet", "-c", "constraints.txt", "uv"], cwd=ROOT, check=False).returncode:
        return False
    if not any(f"[{extra}]" in requirement for requirement in wanted for extra in WITH_TORCH):
        environment["UV_OVERRIDE"] = "deploy/without-torch.txt"
    elif _has_cpu_build(environment):
        environment["UV_TORCH_BACKEND"] = "cpu"
    else:
        _say("PyTorch's index does not answer: torch may come with gigabytes of GPU libraries.")
    return not subprocess.run(
        [*UV, "-c", "constraints.txt", *wanted], cwd=ROOT, env=environment, check=False
    ).returncode


def _has_cpu_build(environment: Mapping[str, str]) -> bool:
    """Whether PyTorch's index answers within seconds."""
    command = [*UV, "--dry-run", "--no-deps", "--reinstall", "--torch-backend", "cpu", "-c", "constraints.txt", "torch"]
    quick = dict(environment) | {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
    try:
        return not subprocess.run(command, cwd=ROOT, env=quick, capture_output=True, timeout=20, check=False).returncode
    except subprocess.TimeoutExpired:
        return False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Install the requirements, where `.` is this checkout; the exit code."""
    wanted = [
        part for requirement in arguments for part in (("-e", requirement) if requirement[0] == "." else (requirement,))
    ]
    if install_by_uv(wanted):
        return 0
    _say("uv could not install it, so pip does, with torch: on Linux that is gigabytes.")
    return subprocess.run(
        [*PIP, "install", "--quiet", "-c", "constraints.txt", *wanted], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
