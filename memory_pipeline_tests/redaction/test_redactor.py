"""Marks, excerpts and hostile texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.tokens import TOKENS
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import thorough
from memory_pipeline_tests.growth import grows_evenly
from memory_pipeline_tests.redaction.canaries import A36, CANARIES, JWT

REDACTOR = Redactor(b"salt")
TOKEN = "ghp_" + A36
BITS = sorted(
    {
        *(
            "token = ",
            "token=",
            "token='",
            "password",
            "password: '",
            "API_KEY=",
            "://a:",
            "bearer 1",
            "Cookie: a=",
            "</private>",
            "auth: ",
        ),
        *("[redacted:token:3fa91c]", "-----END PRIVATE KEY-----", "\\n", "\n", " ", "'", '"', "=", "@", "é", "\ud800"),
        *("curl ", "mysql ", " -p", " -u a:", "login a password ", "value: ", "a1B2" * 12, "0123456789abcdef" * 3),
    }
)
"""Pieces of the texts that detectors look at, and what stands around them."""
PIECES = sorted(
    {
        *BITS,
        *(literal for detector in TOKENS for literal in detector.literals),
        *(text for text, _ in CANARIES.values() if len(text) < 300),
    }
)
ONE_EACH = sorted({*BITS, *(sorted(detector.literals)[0] for detector in TOKENS if detector.literals)})
"""One of each kind: the literals of a detector cost the same."""


def test_a_mark_has_a_kind_and_a_salted_hash() -> None:
    mark = REDACTOR.redact(TOKEN)
    assert re.fullmatch(r"\[redacted:github-token:[0-9a-f]{6}\]", mark)
    assert mark != Redactor(b"pepper").redact(TOKEN)
    assert mark == Redactor(b"salt").redact(TOKEN)


def test_equal_secrets_have_equal_marks() -> None:
    first, second, other = re.findall(r"\[redacted:[^\]]+\]", REDACTOR.redact(f"{TOKEN} '{TOKEN}' {TOKEN}x"))
    assert first == second != other
    assert REDACTOR.redact(f"GH_TOKEN={TOKEN}") == f"GH_TOKEN={first}"


def test_what_is_private_is_left_out_with_all_that_is_in_it() -> None:
    text = f"a <private>one\n{TOKEN}\n[redacted:token:3fa91c]</private> b <private>two</private>"
    assert REDACTOR.redact(text) == "a <private>[private]</private> b <private>[private]</private>"


def test_text_around_a_secret_stays() -> None:
    assert REDACTOR.redact(f"İ «{TOKEN}» ü").replace("[redacted:github-token:", "").startswith("İ «")
    url = REDACTOR.redact("redis://:r3disP4ss@cache:6379/0?x=1")
    assert url.startswith("redis://:[redacted:password:") and url.endswith("]@cache:6379/0?x=1")


@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=14))
@settings(max_examples=thorough(4))
def test_redacting_twice_changes_nothing_and_nothing_raises(pieces: list[str]) -> None:
    text = "".join(pieces)
    redacted = REDACTOR.redact(text)
    assert REDACTOR.redact(redacted) == redacted
    if redacted == text:
        assert redacted is text


@given(text=st.text(max_size=400), limit=st.integers(0, 300))
@settings(max_examples=thorough(2))
def test_an_excerpt_is_never_longer_than_the_text_or_the_limit_and_its_mark(text: str, limit: int) -> None:
    assert len(REDACTOR.excerpt(text, limit)) <= max(limit, 60) or len(text) <= limit


@each("piece", [piece for piece in ONE_EACH if piece.isascii()], ids=repr)
def test_no_text_takes_longer_than_its_length(piece: str) -> None:
    grows_evenly(lambda size: REDACTOR.redact(piece * (size // len(piece))), 15_000)


@pytest.mark.nightly
@each("piece", [piece for piece in PIECES if piece.isascii()], ids=repr)
@each("gap", ["", " "], ids=repr)
def test_no_text_of_pieces_takes_longer_than_its_length(piece: str, gap: str) -> None:
    grows_evenly(lambda size: REDACTOR.redact((piece + gap) * (size // len(piece + gap))), 25_000)


def test_an_excerpt_has_head_and_tail_and_says_how_much_is_gone() -> None:
    text = "a" * 5000 + "b" * 5000
    short = REDACTOR.excerpt(text, 300)
    assert len(short) == 300
    assert short.startswith("aaa") and short.endswith("bbb")
    assert "[… 9,700 characters left out …]" in short
    assert REDACTOR.excerpt("short", 300) == "short"


def test_an_excerpt_of_what_is_short_once_redacted_is_the_whole() -> None:
    text, _ = CANARIES["rsa-key"]
    assert REDACTOR.excerpt(text, 100) == REDACTOR.redact(text)


@each("length", [300, 4000])
def test_an_excerpt_has_no_half_of_a_token(length: int) -> None:
    for offset in range(100, length, 7):
        short = REDACTOR.excerpt("x" * offset + " " + TOKEN + " " + "y " * (length // 2), 300)
        assert "ghp_" not in short and A36[-8:] not in short


def test_an_excerpt_has_no_half_of_a_token_where_long_ones_before_it_became_short() -> None:
    long = JWT + A36 * 30
    for offset in range(120):
        short = REDACTOR.excerpt(f"{long} " + "x" * offset + f" {TOKEN} " + "y " * 5000, 300)
        assert "ghp_" not in short


def test_an_excerpt_has_no_end_of_a_token_longer_than_its_margin() -> None:
    long = JWT + A36 * 70
    for size in (0, 100, 900):
        short = REDACTOR.excerpt("x " * 5000 + f"\n{long}" + " y" * (size // 2), 300)
        assert A36[:12] not in short
