"""Phrases in several languages are near where they say the same; another file than the expected one is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from memory_pipeline.text import phrases
from memory_pipeline.text.encoder import EncoderUnavailableError
from memory_pipeline.text.phrases import DIMENSION, PACKAGE, SHA256, PhraseEncoder, missing_phrases, phrase_encoder
from memory_pipeline_tests.cases import each

SAME = ("put the test file next to the module", "leg die Testdatei neben das Modul", "pon el test junto al módulo")


def test_the_same_in_three_languages_is_nearer_than_anything_else() -> None:
    vectors = phrase_encoder().encode([*SAME, "the kiln log needs a header", "wo liegt das Backup von gestern"])
    cosines = vectors @ vectors.T
    assert cosines[:3, :3].min() > cosines[:3, 3:].max()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-4)


@each("text", ["", " ", "\x00", "‮⁦", "不" * 5_000, "a" * 100_000, "\ud800", "🚀", "\n\n"])
def test_strange_texts_have_vectors_too(text: str) -> None:
    vectors = phrase_encoder().encode([text, "Use uv."])
    assert vectors.shape == (2, DIMENSION)
    assert np.isfinite(vectors).all()


def test_nothing_has_no_rows() -> None:
    assert PhraseEncoder().encode([]).shape == (0, DIMENSION)


def test_beside_others_a_text_has_the_vector_that_it_has_alone() -> None:
    """But for the last digits of a float: what is multiplied at once depends on how many there are."""
    alone = np.vstack([phrase_encoder().encode([text]) for text in SAME])
    assert np.abs(phrase_encoder().encode(SAME) - alone).max() < 1e-5


@each("damaged", SHA256)
@each("content", [None, b"", b"another"])
def test_a_file_that_is_gone_or_another_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: str, content: bytes | None
) -> None:
    """The files are compared before any of the package's code runs."""
    folder = tmp_path / PACKAGE / "resources"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise SystemExit('imported')", "utf-8")
    whole = dict.fromkeys(SHA256, b"whole")
    for name, whole_content in whole.items():
        (folder / name).write_bytes(whole_content)
    monkeypatch.setattr(phrases, "SHA256", {name: phrases.hashlib.sha256(c).hexdigest() for name, c in whole.items()})
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert missing_phrases() is None
    if content is None:
        (folder / damaged).unlink()
    else:
        (folder / damaged).write_bytes(content)
    with pytest.raises(EncoderUnavailableError, match=f"{damaged} is not the file .*pip install --force-reinstall"):
        PhraseEncoder().encode(["Use uv."])
