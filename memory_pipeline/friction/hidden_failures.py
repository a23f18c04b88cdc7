"""Summary lines of test runners and compilers that report a failure although a pipe, `|| true` or a script hid the exit
code."""

from __future__ import annotations

import re
import shlex

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
_HIDES = frozenset(("|", "||", "|&", ";"))
"""Operators after which the exit code is that of the last command."""
_SHOWS = frozenset(
    """
    gh git glab curl wget docker kubectl journalctl aws gcloud az jq awk diff echo printf ssh tmux psql sqlite3
    """.split()  # noqa: SIM905
)
"""Programs that print the output of other programs."""


def verdict_of_failure(text: str) -> str | None:
    """The line in which a test runner or a compiler reports its failure."""
    found = _VERDICT.search(text)
    return found[0].strip() if found else None


def hides_its_end(command: str) -> bool:
    """Whether another command determines the exit code: `make test | tail`, `cargo check || true`."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        return not _HIDES.isdisjoint(words)
    except ValueError:  # half of a quoted text
        return False


def shows_others(head: str) -> bool:
    """Whether the command prints the output of another program."""
    return head.split(" ", 1)[0] in _SHOWS
