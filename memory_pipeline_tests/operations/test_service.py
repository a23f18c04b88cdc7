"""The file of the service, for each system, and the command that writes it and takes it away."""

import plistlib
import sys
from pathlib import Path

import pytest

from memory_pipeline.operations.service import NoServiceManagerError, service_of, variables_not_carried
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import workspace


def test_the_unit_starts_the_ui_of_this_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", "/opt/with blank:/50%/$HOME")
    settings, _ = workspace(tmp_path / "my memory")
    made = service_of(settings, 3456, platform="linux", home=tmp_path)
    assert made.file == tmp_path / ".config/systemd/user/memory-pipeline.service"
    lines = made.content.splitlines()
    assert f"ExecStart={sys.executable} -m memory_pipeline.cli.main ui --port 3456" in lines
    assert f'Environment="MEMORY_WORKSPACE={settings.workspace}"' in lines
    assert 'Environment="PATH=/opt/with blank:/50%%/$$HOME"' in lines
    assert "WantedBy=default.target" in lines


def test_it_finds_agents_that_were_moved_and_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {"CLAUDE_CONFIG_DIR": "/a,/b c", "CODEX_HOME": "/d", "XDG_DATA_HOME": "/e", "GEMINI_CLI_HOME": "/f"}
    moved |= {"PI_CODING_AGENT_DIR": "/g", "PI_CODING_AGENT_SESSION_DIR": "/h", "PI_CONFIG_DIR": ".i"}
    not_carried = {
        "OPENAI_API_KEY": "k",
        "QDRANT_API_KEY": "k",
        "DAGSTER_POSTGRES_PASSWORD": "k",
        "MEMORY_USER_NAME": "A",
    }
    for name, value in (moved | not_carried).items():
        monkeypatch.setenv(name, value)
    settings, _ = workspace(tmp_path)
    made = service_of(settings, 3000, platform="linux", home=tmp_path)
    assert moved.items() <= made.variables.items() and not not_carried.keys() & made.variables.keys()
    assert 'Environment="CLAUDE_CONFIG_DIR=/a,/b c"' in made.content.splitlines()
    plist = plistlib.loads(service_of(settings, 3000, platform="darwin", home=tmp_path).content.encode())
    assert plist["EnvironmentVariables"] == made.variables
    names = variables_not_carried(made)
    assert "MEMORY_USER_NAME" in names[0] and "MEMORY_WORKSPACE" not in names[0]
    assert {"OPENAI_API_KEY", "QDRANT_API_KEY", "DAGSTER_POSTGRES_PASSWORD"} <= set(names[1])


def test_the_plist_does_the_same(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    made = service_of(settings, 3456, platform="darwin", home=tmp_path)
    assert made.file.parent == tmp_path / "Library/LaunchAgents"
    read = plistlib.loads(made.content.encode())
    assert read["ProgramArguments"][-3:] == ["ui", "--port", "3456"]
    assert read["EnvironmentVariables"]["MEMORY_WORKSPACE"] == f"{settings.workspace}"
    assert read["KeepAlive"] == {"SuccessfulExit": False}


def test_another_system_is_told_what_to_run(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    with pytest.raises(NoServiceManagerError, match=r"memory_pipeline\.cli\.main ui"):
        service_of(settings, 3000, platform="win32", home=tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it writes a systemd unit")
def test_installed_and_taken_away(tmp_path: Path) -> None:
    """With a systemctl that keeps what it is asked."""
    tools, asked = tmp_path / "tools", tmp_path / "asked"
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    (tools / "systemctl").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "MEMORY_USER_NAME": "Ada", "OPENAI_API_KEY": "sk-of-ada"}
    unit = tmp_path / ".config/systemd/user/memory-pipeline.service"

    refused = memory(tmp_path, "admin", "service", "install", env=env)
    assert refused.returncode == 2 and not unit.exists() and not asked.exists()
    assert "ExecStart=" in refused.stdout

    done = memory(tmp_path, "admin", "service", "install", "--yes", "--port", "3777", env=env)
    assert done.returncode == 0, done.stderr
    assert "does not see MEMORY_USER_NAME; `memory settings set`" in done.stdout
    assert "does not see OPENAI_API_KEY, because keys are not written" in done.stdout
    assert "--port 3777" in unit.read_text("utf-8")
    assert "Ada" not in unit.read_text("utf-8") and "sk-of-ada" not in unit.read_text("utf-8")
    assert asked.read_text().splitlines() == ["--user daemon-reload", "--user enable --now memory-pipeline.service"]
    assert memory(tmp_path, "admin", "service", "status", env=env).returncode == 0

    gone = memory(tmp_path, "admin", "service", "uninstall", "--yes", env=env)
    assert gone.returncode == 0, gone.stderr
    assert not unit.exists()
    assert asked.read_text().splitlines()[-1] == "--user disable --now memory-pipeline.service"
    again = memory(tmp_path, "admin", "service", "uninstall", "--yes", env=env)
    assert again.returncode == 1 and "No service is installed" in again.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it writes a systemd unit")
def test_a_manager_that_refuses_is_told(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text("#!/bin/sh\necho Failed to connect to bus >&2\nexit 1\n")
    (tools / "systemctl").chmod(0o755)
    done = memory(tmp_path, "admin", "service", "install", "--yes", env={"PATH": f"{tools}:/usr/bin:/bin"})
    assert done.returncode == 0
    assert "Failed to connect to bus" in done.stderr
