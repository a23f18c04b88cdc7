"""Lines of a tool's output that describe an error, and those that report a failure which the exit code hid."""

from __future__ import annotations

import re

import orjson

from memory_pipeline.text.regex import deferred

_COLOUR = deferred(r"\x1b\[[0-9;?]*[A-Za-z]")
_WRAPPING = deferred(
    r"^\s*(?:Chunk ID: .*|Wall time: .*|Process exited with code \d+|Original token count: .*|Output:|Exit code:? \d+|"
    r"Command exited with code \d+|Total output lines: .*|Script (?:completed|failed|error:?).*|\(no output\)|"
    r"<(?:/?(?:stdout|stderr|output|error))>|stdout:|stderr:|Error: Exit code \d+)\s*$",
    re.I | re.M,
)
"""The text that a harness puts around a tool's output."""
_MARKUP = deferred(r"</?tool_use_error>|^failed in sandbox \w+ with execution error: ", re.I)
_JSON_OUTPUT = deferred(r"^\s*\{\s*\"output\"\s*:")
_EXPLAINING = deferred(
    r"error|fail|denied|not found|refused|in use|cannot|can't|could not|couldn't|exception|invalid|missing|unknown|"
    r"no such|unable|fatal|conflict|undefined|unexpected|mismatch|required|not installed|timed? ?out|"
    r"timeout|no matches|unauthori[sz]ed|"
    r"forbidden|out of date|does not|doesn't|must |expected |does not exist|unsupported|not set|panic|abort",
    re.I,
)
_SUMMARY = deferred(
    r"task failed|exit(?:ed)?(?: with)? (?:status|code)|^make(?:\[\d+\])?: \*\*\*|npm err! (?:code|errno|path|command|"
    r"a complete log|lifecycle)|^\s*(?:\d+ )?(?:tests?|failed|failures?|errors?|passed)[:, ]*\d*\s*$|"
    r"\b\d{1,4} (?:failed|passed)\b(?!:)|"
    r"^(?:FAIL|ok|---|===|\[\w+\] ERROR)\b|command failed|^error:?$|^traceback|^\s*at |^\s*File \"|^warning|"
    r"found \d+ (?:errors?|problems?|warnings?)|elifecycle|short test summary|^npm warn|\b(?:INFO|DEBUG)\b:?\s|"
    r"^(?:checking|compiling|downloading|downloaded|installing|building) [\w.-]+ v?\d",
    re.I,
)
"""A line that reports a failure without its cause."""


_OF_A_SHELL = deferred(
    r"^(?:\(eval\)|(?:/bin/)?(?:ba|z|da)?sh|/bin/\w+): ?(?:line )?\d*:? ?.*(?:command not found|"
    r"no matches found|parse error|"
    r"no such file or directory|permission denied).*$|^\S+: command not found$|^find: .*: no such file or directory$",
    re.I | re.M,
)
MAX_ALONE = 3
"""Maximum lines of an output that is only an error message."""
MAX_HIDDEN = 1_500
"""Maximum characters of an output in which the shell's error message is searched."""


def hidden_error(text: str) -> str | None:
    """The shell's own error message in the output of a call that the harness reports as successful."""
    found = _OF_A_SHELL.search(_COLOUR.sub("", text[:MAX_HIDDEN])) if len(text) <= MAX_HIDDEN else None
    return found[0].strip() if found else None


def error_in(text: str) -> str | None:
    """The line of a failed tool's output that describes the error, verbatim; None if there is none."""
    lines = _lines(text)
    telling = [line for line in lines if _EXPLAINING.search(line)]
    specific = [line for line in telling if not _SUMMARY.search(line)]
    python = [line for line in specific if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    shell = hidden_error(text)
    alone = [line for line in lines if len(line.split()) > 2] if len(lines) <= MAX_ALONE else []
    for found in (python[-1:], [shell] if shell else [], specific[:1], [] if telling else alone[:1]):
        if found:
            return _MARKUP.sub("", found[0]).strip()
    return None


def errors_in(text: str) -> list[str]:
    """Every line of the output that describes an error, not merely that there was one."""
    return [line for line in _lines(text) if _EXPLAINING.search(line) and not _SUMMARY.search(line)]


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in _output_of(text).splitlines())
    return [line for line in lines if any(c.isalnum() for c in line)]


def _output_of(text: str) -> str:
    """The output of a tool without the text that its harness adds."""
    if _JSON_OUTPUT.match(text):
        try:
            text = str(orjson.loads(text)["output"])
        except (ValueError, KeyError, TypeError):  # it was cut
            text = text.replace("\\n", "\n")
    return _WRAPPING.sub("", _COLOUR.sub("", text))


_VERDICT = re.compile(
    r"^(?:--- FAIL: |FAIL(?:\t|$)|FAILED [\w./-]+::|\s*Tests?:? .*\b[1-9]\d* failed|"
    r"\s*Test (?:Files|Suites):? .*\b[1-9]\d* failed|=+ .*\b[1-9]\d* (?:failed|errors?)\b.* in [\d.]+|"
    r"test result: FAILED|error\[E\d{4}\]|error: could not compile|"
    r"[1-9]\d* (?:errors?|warnings? and [1-9]\d* errors?) generated|✖ \d+ problems? \([1-9]|Found [1-9]\d* errors?\b|"
    r"[1-9]\d* issues:$|\d+ examples?, [1-9]\d* failures?|\s+[1-9]\d* failing$|make(?:\[\d+\])?: \*\*\* |"
    r"npm (?:ERR!|error) |BUILD FAILED|Build FAILED|FAILURE: Build failed|\[ERROR\] BUILD FAILURE|"
    r"\[\S+\] ERROR task failed)|"
    r"^[\w@./\\-]+[:(]\d+[:,]\d+\)?: (?:fatal )?error\b",
    re.M,
)
"""Summary lines of test runners and compilers that report a failure although a pipe, `|| true` or a script hid the exit
code."""


def verdict_of_failure(text: str) -> str | None:
    """The line in which a test runner or a compiler reports its failure."""
    found = _VERDICT.search(text)
    return found[0].strip() if found else None
