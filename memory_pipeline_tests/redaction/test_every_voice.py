"""A secret of each kind, in every voice of every harness, is gone from what is read; what is said about one stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.proposals.offering import SECRET, why_left_out
from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.redactor import Unredacted
from memory_pipeline.redaction.spoken import names_password
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.redaction.canaries import CANARIES
from memory_pipeline_tests.redaction.planted import HARNESSES, found_in


def read(folder: Path, redactor: Redactor) -> ParsedSession:
    (source,) = find_sources([folder])
    return parse(source, redactor=redactor)


@pytest.mark.slow
@each("write", HARNESSES, ids=lambda write: write.__name__)
def test_no_canary_is_read_whoever_says_it(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path)
    session = read(tmp_path, Redactor(b"salt"))
    told = Counter("answer" if message.answer_to else message.role for message in session.messages)
    # every voice was heard
    assert all(told[role] >= len(CANARIES) for role in ("user", "assistant", "tool", "answer")), told
    assert found_in([("", repr(session)), *(("", message.text) for message in session.messages)]) == set()


@each("write", HARNESSES, ids=lambda write: write.__name__)
def test_every_canary_is_read_where_redaction_is_off(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path)
    session = read(tmp_path, Unredacted())
    for role in ("user", "assistant", "tool"):
        found = found_in([("", message.text) for message in session.messages if message.role == role])
        assert found - {"private"} == set(CANARIES)


SAID = [kind for kind in CANARIES if re.match("(?:en|de|fr|es|it|pt|nl|pl|sv|tr|ru|zh|ja|ko)-", kind)]
"""Passwords that are said, by the language in which they are."""


@each("kind", SAID)
def test_it_is_never_offered(kind: str) -> None:
    text, _ = CANARIES[kind]
    assert why_left_out(text, []) == SECRET
    assert why_left_out(Redactor(b"salt").redact(text), []) == SECRET


STAYS = [
    "the password is stored in the vault",
    "the password must be 8 characters",
    "my password is in 1Password",
    "das Passwort ist falsch",
    "密码是必填的",
    "# 有密码：尝试在2次内登录",
    "input=/etc/passwd generated_agent=a1B2c3D4",
    "la clave es: no usar ORMs",
    "the password hash sha256 is used",
    "the password is validated with bcrypt2",
    "user password reset v2",
    "set password policy2",
    'log("passwd "generating random ID2")',
    "result = _highs_to_scipy_status_message2(solver)",
    "--- PASS: TestUser/a1b2c3d4e5f6 (0.00s)",
]


@each("text", STAYS)
def test_what_is_said_about_one_stays(text: str) -> None:
    assert Redactor(b"salt").redact(text) is text
    assert not names_password(text)
