"""Dagster's UI and daemon as a service of the user's session: a systemd user unit on Linux, a launchd agent on macOS.

The system is not changed, root is not needed, and deleting the file undoes it.
"""

from __future__ import annotations

import os
import plistlib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from memory_pipeline.errors import MisuseError
from memory_pipeline.llm.agents import AGENTS
from memory_pipeline.llm.found import PROVIDERS
from memory_pipeline.sessions.discovery import moving_variables
from memory_pipeline.settings import Settings
from memory_pipeline.settings.sources import settings_of

NAME = "memory-pipeline"
LABEL = "io.memory-pipeline"
"""The name of the launchd agent."""


class NoServiceManagerError(MisuseError):
    """This machine has neither systemd nor launchd."""


@dataclass(frozen=True)
class Service:
    """A file for a service manager, and the commands that load it."""

    file: Path
    content: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    log: str
    """The command that shows its output."""
    variables: dict[str, str]
    """The environment of the service."""

    @property
    def is_installed(self) -> bool:
        return self.file.exists()


def service_of(settings: Settings, port: int, *, platform: str = sys.platform, home: Path | None = None) -> Service:
    """The service for this workspace. Raises `NoServiceManagerError` on a system that has neither manager."""
    home = home or Path.home()
    command = (sys.executable, "-m", "memory_pipeline.cli.main", "ui", "--port", f"{port}")
    variables = {"MEMORY_WORKSPACE": f"{settings.workspace}", "PATH": os.environ.get("PATH", os.defpath)}
    # without them it would watch the default folders of agents whose sessions are elsewhere
    variables |= {name: value for name in moving_variables() if (value := os.environ.get(name))}
    if platform == "darwin":
        return _launchd(home, command, variables, settings)
    if platform.startswith("linux"):
        return _systemd(home, command, variables)
    raise NoServiceManagerError(
        f"No service manager of {platform} is supported; systemd on Linux and launchd on macOS are. Have your system "
        f"run `{shlex.join(command)}` when you log in."
    )


def _systemd(home: Path, command: tuple[str, ...], variables: dict[str, str]) -> Service:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    environment = "\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items())
    content = f"""\
# Written by `memory admin service install`; `memory admin service uninstall` removes it.
[Unit]
Description=Memory from the transcripts of coding agents: Dagster's UI, sensors and schedules

[Service]
ExecStart={" ".join(map(_quoted, command))}
{environment}
Restart=on-failure
RestartSec=30
Nice=10

[Install]
WantedBy=default.target
"""
    unit = f"{NAME}.service"
    return Service(
        config / "systemd" / "user" / unit,
        content,
        (("systemctl", "--user", "daemon-reload"), ("systemctl", "--user", "enable", "--now", unit)),
        (("systemctl", "--user", "disable", "--now", unit),),
        f"journalctl --user -u {unit}",
        variables,
    )


def _quoted(word: str) -> str:
    """The word escaped for systemd, which interprets `%`, `$` and blanks."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(c in word for c in " \t'\"\\;") else escaped


def _launchd(home: Path, command: tuple[str, ...], variables: dict[str, str], settings: Settings) -> Service:
    file, log = home / "Library" / "LaunchAgents" / f"{LABEL}.plist", settings.workspace / "service.log"
    content = plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "EnvironmentVariables": variables,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 30,
            "Nice": 10,
            "StandardOutPath": f"{log}",
            "StandardErrorPath": f"{log}",
        }
    ).decode()
    domain = f"gui/{os.getuid()}"
    return Service(
        file,
        content,
        (("launchctl", "bootstrap", domain, f"{file}"),),
        (("launchctl", "bootout", f"{domain}/{LABEL}"),),
        f"tail {shlex.quote(f'{log}')}",
        variables,
    )


def variables_not_carried(service: Service) -> tuple[list[str], list[str]]:
    """The settings, and the keys and logins, that are set in this environment but not in the service's."""
    settings = {setting.variable for setting in settings_of(Settings).values()}
    keys = {name for known in (*PROVIDERS, *AGENTS) for name in known.variables}
    keys |= {name for name in settings if name.endswith(("_KEY", "_TOKEN"))}
    keys |= {name for name in os.environ if name.startswith(("DAGSTER_POSTGRES_", "AWS_", "AZURE_STORAGE_"))}
    left = {name for name, value in os.environ.items() if value.strip()} - service.variables.keys()
    return sorted(left & settings - keys), sorted(left & keys)
