"""A model behind a command, like `pi -p --no-session` or `claude -p`, which receives the prompt on stdin or as an
argument and prints the answer.

The command runs without a shell in an empty directory, so paths in its arguments must be absolute. `{prompt}` in an
argument stands for the prompt and `{system}` for the instructions. Without `{prompt}` the prompt goes to stdin; without
`{system}` the instructions precede it. `{files}` is the folder of the files for the commands of `llm/agents.py`.
`NAME=value` before the program sets a variable, as in a shell. Images, the temperature and the limit of the answer are
not passed on.

The input contains text from anyone: web pages, files, the output of tools. A coding agent should have its tools
disabled, as with `pi -p --no-session --no-tools`, or such text may make it run something.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import IO

from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError, quotable
from memory_pipeline.llm.prompts import mark_prompt, own_environment
from memory_pipeline.llm.request import Reply, Request
from memory_pipeline.text.tokens import estimate

_MAX_ARGUMENT = 128 * 1024  # bytes, of Linux, the ending NUL included
_MAX_ANSWER = 4_000_000  # bytes that are read of what it printed
_GRACE_SECONDS = 1.0
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
FILES = Path(__file__).parent / "files"
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)


class CommandBackend:
    """A model reached through a program of this machine."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config

    def send(self, request: Request) -> Reply:
        """Run the command once. Its process group is killed on timeout or interruption."""
        variables, template = self._template()
        puts_prompt, puts_system = (any(part in argument for argument in template) for part in ("{prompt}", "{system}"))
        together = request.said if puts_system or not request.system else f"{request.system}\n\n{request.said}"
        prompt = mark_prompt(together)
        texts = {"{prompt}": prompt, "{system}": request.system, "{files}": str(FILES)}
        places = re.compile("|".join(map(re.escape, texts)))
        arguments = [places.sub(lambda m: texts[m[0]], argument) for argument in template[1:]]
        self._check(arguments)
        output = self._run([self._program(template[0]), *arguments], "" if puts_prompt else prompt, variables)
        asked = estimate(prompt) + (estimate(request.system) if puts_system else 0)
        return Reply(output, asked, estimate(output), False, self._config.model)

    def _run(self, command: list[str], stdin: str, variables: dict[str, str]) -> str:
        # files instead of pipes need no reader, and a grandchild that keeps one open does not block
        with (
            tempfile.TemporaryDirectory() as folder,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as printed,
            tempfile.TemporaryFile() as complaints,
        ):
            given.write(stdin.encode("utf-8", "replace"))
            given.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=given,
                    stdout=printed,
                    stderr=complaints,
                    cwd=folder,
                    env=own_environment() | variables,
                    start_new_session=True,
                )
            except OSError as error:
                if error.errno == errno.E2BIG:
                    raise self._too_long() from None
                raise self._misconfigured(f"cannot be started: {error.strerror}") from None
            try:
                code = process.wait(self._config.timeout)
            except subprocess.TimeoutExpired:
                _kill(process)
                reason = f"no answer within {self._config.timeout:g} s, so it was stopped"
                raise TransientError(self._failed(reason), may_be_billed=True) from None
            except BaseException:
                _kill(process)
                raise
            if code:
                ended = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
                last = _last_line(complaints) or _last_line(printed)
                raise TransientError(self._failed(f"{ended}: {last}" if last else ended), may_be_billed=True)
            return _plain(_text(printed)).strip()

    def _template(self) -> tuple[dict[str, str], list[str]]:
        """The variables for the program, and the program with its arguments."""
        try:
            words = shlex.split(self._config.model)
        except ValueError as error:
            raise self._misconfigured(f"cannot be read: {error}") from None
        variables = list(takewhile(_VARIABLE.match, words))
        if len(variables) == len(words):
            raise self._misconfigured("names no program")
        pairs = (word.partition("=") for word in variables)
        return {name: value for name, _, value in pairs}, words[len(variables) :]

    def _program(self, name: str) -> str:
        found = shutil.which(name)
        if not found:
            raise self._misconfigured(f"names a program, {name!r}, that does not exist or cannot be run")
        return str(Path(found).absolute())

    def _check(self, arguments: list[str]) -> None:
        if any("\0" in argument for argument in arguments):
            raise RequestRefusedError(
                "The prompt contains a NUL, which an argument must not; use a command that reads stdin."
            )
        longest = max((len(os.fsencode(argument)) for argument in arguments), default=0)
        if sys.platform == "linux" and longest >= _MAX_ARGUMENT:
            raise self._too_long()

    def _too_long(self) -> RequestRefusedError:
        return RequestRefusedError(
            "The prompt is longer than the system allows an argument to be; leave {prompt} out of "
            f"{self._config.role}_MODEL, so that it goes to stdin, or lower MEMORY_CHUNK_TOKENS."
        )

    def _failed(self, reason: str) -> str:
        return f"`{self._template()[1][0]}`: {quotable(reason)}"

    def _misconfigured(self, what: str) -> ModelMisconfiguredError:
        return ModelMisconfiguredError(
            f"{self._config.role}_MODEL={quotable(self._config.model)!r} {what}. "
            "Correct it and run it again; answers are kept."
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children: with SIGTERM first, so that it can clean up, then by force."""
    with suppress(ProcessLookupError, PermissionError):  # already ended
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_ANSWER).decode("utf-8", "replace")


def _plain(text: str) -> str:
    """The text without escape sequences of a terminal."""
    return _ESCAPES.sub("", text).replace("\r\n", "\n")


def _last_line(file: IO[bytes]) -> str:
    lines = [line.strip() for line in _plain(_text(file)).splitlines() if line.strip()]
    return lines[-1] if lines else ""
