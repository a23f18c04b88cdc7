"""pi, Codex and OpenCode as a test runs them: each in a HOME of its own, talking to the scripted model.

They are installed by `make harnesses`, or lie in the directory that TEST_HARNESSES names.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from memory_pipeline_tests.real_agents.model_server import SCRIPTED, Call, ModelServer

INSTALLED = Path(os.environ.get("TEST_HARNESSES") or Path(__file__).parents[2] / ".harnesses")
PROGRAMS = INSTALLED / "node_modules/.bin"
NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there, so that what a harness wants to fetch at its start fails at once."""
SECONDS = 300
WINDOW = 1_000_000


@dataclass
class Harness:
    """One conversation, prompted again and again; each prompt is a process of its own."""

    home: Path
    cwd: Path
    model: ModelServer

    name: ClassVar[str]
    typed: ClassVar[str] = "user"
    """The role of its prompts."""
    shell_tool: ClassVar[str]
    kept: ClassVar[int]
    """How many of the last texts before a compaction stay in the model's context, as set up here."""

    def configure(self) -> None:
        raise NotImplementedError

    def prompt(self, text: str, *, again: bool = True) -> str:
        """Say this to the model, in the same session or in a new one, and wait for the end of the turn."""
        raise NotImplementedError

    def compact(self) -> None:
        """Have the model summarise the conversation; the next turn of the script is the summary."""
        raise NotImplementedError

    def shell(self, command: str, text: str = "") -> Call:
        """The model's call of the tool that runs a command."""
        return Call(self.shell_tool, {"command": command}, text)

    def write(self, path: str, value: dict[str, Any]) -> None:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(value))

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
        return {"PATH": path, "HOME": str(self.home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **proxies}

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run the program to its end; a turn that failed is no reason to stop, for its traces are looked at later."""
        done = subprocess.run(
            [PROGRAMS / self.name, *arguments],
            cwd=self.cwd,
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return done.stdout + done.stderr

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The program as a server that is spoken to."""
        pipe = subprocess.PIPE
        command = [PROGRAMS / self.name, *arguments]
        with subprocess.Popen(
            command, cwd=self.cwd, env=self.environment(), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(timeout=60)
                except subprocess.TimeoutExpired:  # a server may wait for connections that it thinks are open
                    process.kill()


class Pi(Harness):
    name = "pi"
    shell_tool = "bash"
    kept = 2

    def configure(self) -> None:
        model = {"id": SCRIPTED, "contextWindow": WINDOW, "maxTokens": 4000}
        provider = {"baseUrl": self.model.url, "api": "openai-completions", "apiKey": "none", "models": [model]}
        self.write(".pi/agent/models.json", {"providers": {"scripted": provider}})
        # about four characters are a token, so a prompt and its answer are more than 12
        compaction, retry = {"keepRecentTokens": 12}, {"maxRetries": 2, "baseDelayMs": 10}
        self.write(".pi/agent/settings.json", {"compaction": compaction, "retry": retry})

    def prompt(self, text: str, *, again: bool = True) -> str:
        return self.run(*self._options, "--print", *(["--continue"] if again else []), text)

    def compact(self) -> None:
        with self.running(*self._options, "--mode", "rpc", "--continue") as process:
            assert process.stdin and process.stdout
            process.stdin.write('{"type": "compact"}\n')
            process.stdin.flush()
            answer = next(line for line in process.stdout if json.loads(line)["type"] == "response")
            assert json.loads(answer)["success"], answer

    @property
    def _options(self) -> list[str]:
        return ["--offline", "--provider", "scripted", "--model", SCRIPTED]


class Codex(Harness):
    name = "codex"
    typed = "injected"  # `codex exec` is what scripts run
    shell_tool = "exec_command"
    kept = 0

    def configure(self) -> None:
        settings = f"""
            model = "{SCRIPTED}"
            model_provider = "scripted"
            model_context_window = {WINDOW}
            check_for_update_on_startup = false
            features.plugins = false
            [model_providers.scripted]
            name = "Scripted"
            base_url = "{self.model.url}"
            wire_api = "responses"
            request_max_retries = 2
            stream_max_retries = 2
        """
        (self.home / ".codex").mkdir()
        (self.home / ".codex/config.toml").write_text(settings)
        self.compacts = False

    def shell(self, command: str, text: str = "") -> Call:
        return Call(self.shell_tool, {"cmd": command}, text)

    def prompt(self, text: str, *, again: bool = True) -> str:
        limit = ["--config", "model_auto_compact_token_limit=1"] if self.compacts else []
        self.compacts = False
        options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *limit]
        return self.run("exec", *(["resume", "--last"] if again else []), *options, text)

    def compact(self) -> None:
        """It has no command for it, but does so before the next prompt when the conversation is too long."""
        self.compacts = True


class OpenCode(Harness):
    name = "opencode"
    shell_tool = "bash"
    kept = 2

    def configure(self) -> None:
        limit = {"context": WINDOW, "output": 4000}
        models = {name: {"name": name, "tool_call": True, "limit": limit} for name in (SCRIPTED, "titles")}
        options = {"baseURL": self.model.url, "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options, "models": models}
        settings = {
            "model": f"scripted/{SCRIPTED}",
            "small_model": "scripted/titles",
            "provider": {"scripted": provider},
            "enabled_providers": ["scripted"],
            "permission": "allow",
            "compaction": {"tail_turns": 1},
            "autoupdate": False,
            "share": "disabled",
        }
        self.write(".config/opencode/opencode.json", settings)

    def shell(self, command: str, text: str = "") -> Call:
        return Call(self.shell_tool, {"command": command, "description": "A command of the test"}, text)

    def environment(self) -> dict[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        disabled = {f"OPENCODE_DISABLE_{name}": "true" for name in off}
        # beside a plugin it installs its types, and waits a minute for a registry that cannot be reached
        return super().environment() | disabled | {"npm_config_offline": "true"}

    def prompt(self, text: str, *, again: bool = True) -> str:
        # a prompt of several words would be put into quotation marks when given as an argument
        return self.run("run", *(["--continue"] if again else []), stdin=text)

    def compact(self) -> None:
        with self.running("serve", "--hostname", "127.0.0.1", "--port", "0") as process:
            assert process.stdout
            url = next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            (session,) = self._ask(f"{url}/session")
            body = {"providerID": "scripted", "modelID": SCRIPTED}
            assert self._ask(f"{url}/session/{session['id']}/summarize", body) is True

    def _ask(self, url: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/json", "x-opencode-directory": str(self.cwd)}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers)
        # without the proxies of the machine
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=SECONDS) as answer:
            return json.load(answer)


HARNESSES = (Pi, Codex, OpenCode)
