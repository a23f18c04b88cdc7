"""No canary survives, whatever stands around it and wherever a long text is cut."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.redaction import Redactor
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import thorough
from memory_pipeline_tests.redaction.canaries import CANARIES

REDACTOR = Redactor(b"salt")
# What a name and a value may have in common; longer pieces would be a leak.
PIECE = 9


def leaks(text: str, secret: str) -> list[str]:
    """The pieces of the secret that are still in the text."""
    parts = {secret[start : start + PIECE] for start in range(max(len(secret) - PIECE, 0) + 1)}
    return sorted(part for part in parts if part in text)


def test_there_are_canaries_of_many_kinds() -> None:
    assert len(CANARIES) >= 48
    assert all(secret in text for text, secret in CANARIES.values())


@each("kind", CANARIES)
def test_a_canary_is_replaced_by_a_mark(kind: str) -> None:
    text, secret = CANARIES[kind]
    redacted = REDACTOR.redact(text)
    assert not leaks(redacted, secret)
    assert re.search(r"\[redacted:[a-z0-9-]+:[0-9a-f]{6}\]|\[private\]", redacted)
    assert REDACTOR.redact(redacted) == redacted


@each("kind", CANARIES)
def test_a_canary_is_found_among_other_text(kind: str) -> None:
    text, secret = CANARIES[kind]
    for carrier in (
        f"$ env\nLANG=C\n{text}\nEDITOR=vi\n",
        f"I ran this:\n\n```\n{text}\n```\n\nand it failed.",
        f"İstanbul ist schön.\n{text}\n",
    ):
        assert not leaks(REDACTOR.redact(carrier), secret)


@each("kind", CANARIES)
def test_a_canary_is_found_in_escaped_text(kind: str) -> None:
    text, secret = CANARIES[kind]
    escaped = json.dumps({"output": f"before\n{text}\nafter"})
    assert not leaks(REDACTOR.redact(escaped), json.dumps(secret)[1:-1])


@each("kind", CANARIES)
def test_an_excerpt_leaks_no_canary_wherever_the_cut_falls(kind: str) -> None:
    text, secret = CANARIES[kind]
    for length in (3000, 9000):
        for offset in (*range(0, 460, 46), *range(length - 437, length, 46)):
            before = ("word " * length)[:offset]
            long = f"{before}\n{text}\n" + ("more " * length)[: length - offset]
            assert not leaks(REDACTOR.excerpt(long, 300), secret)


@given(kinds=st.lists(st.sampled_from(sorted(CANARIES)), min_size=1, max_size=6), noise=st.text(max_size=40))
@settings(max_examples=thorough(0.6))
def test_canaries_are_found_beside_each_other(kinds: list[str], noise: str) -> None:
    text = f"\n{noise}\n".join(CANARIES[kind][0] for kind in kinds)
    redacted = REDACTOR.redact(text)
    for kind in kinds:
        assert CANARIES[kind][1] not in redacted
    assert REDACTOR.redact(redacted) == redacted
