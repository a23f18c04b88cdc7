"""What a model wants before a text is put there, and its cosines count only where they were measured."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.text.embedding_models import MINILM_COSINES, facts_of
from memory_pipeline.text.encoder import Encoder, EncoderUnavailableError
from memory_pipeline.text.relation import OBSERVED, OFFERED
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import FakeEncoder, workspace
from memory_pipeline_tests.text.hub import tiny_model

BGE = "Represent this sentence for searching relevant passages: "


@each(
    ("name", "query", "document"),
    [
        ("all-MiniLM-L6-v2", "", ""),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),  # its card has other words, which stand in its own prompts
        ("BAAI/bge-small-en-v1.5", BGE, ""),
        ("/models/bge-large-en", BGE, ""),
        ("BAAI/bge-m3", "", ""),
        ("thenlper/gte-base", "", ""),
        ("somebody/something", "", ""),
    ],
)
def test_each_family_has_its_words(name: str, query: str, document: str) -> None:
    facts = facts_of(name)
    assert (facts.query, facts.document) == (query, document)


@pytest.mark.slow
@each(
    ("name", "prompts", "query", "document"),
    [
        ("nomic-embed-text-v1.5", None, "search_query: ", "search_document: "),
        ("bge-small-en-v1.5", None, BGE, ""),
        ("somebodys-model", None, "", ""),
        ("e5-small-v2", {"query": "ask: ", "document": "told: "}, "ask: ", "told: "),
        ("e5-small-v2", {"query": "ask: "}, "ask: ", ""),
    ],
)
def test_they_stand_before_the_text_unless_the_model_has_its_own(
    name: str, prompts: dict[str, str] | None, query: str, document: str, tmp_path: Path
) -> None:
    plain = Encoder(str(tiny_model(tmp_path / "plain")))
    encoder = Encoder(str(tiny_model(tmp_path / name, prompts)))
    assert encoder.encode_query("which port?") == pytest.approx(plain.encode([f"{query}which port?"])[0], abs=1e-5)
    assert encoder.encode(["Port 8080."])[0] == pytest.approx(plain.encode([f"{document}Port 8080."])[0], abs=1e-5)
    assert math.hypot(*encoder.encode_query("which port?")) == pytest.approx(1, abs=1e-5)
    if query:
        assert encoder.encode_query("which port?") != pytest.approx(plain.encode(["which port?"])[0], abs=1e-3)


@pytest.mark.slow
def test_a_model_with_program_code_is_refused_and_its_code_not_run(tmp_path: Path) -> None:
    folder, proof = tiny_model(tmp_path / "model"), tmp_path / "was-run"
    (folder / "own.py").write_text(f"open({str(proof)!r}, 'w').close()\nclass Config: ...\nclass Model: ...\n")
    config = json.loads((folder / "config.json").read_text()) | {
        "model_type": "never_heard_of",
        "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderUnavailableError, match="it needs program code of its own, which is never run"):
        Encoder(str(folder)).encode(["Port 8080."])
    assert not proof.exists()


def test_cosines_are_those_of_the_model_that_was_measured() -> None:
    assert facts_of("all-MiniLM-L6-v2").cosines == facts_of("sentence-transformers/all-MiniLM-L6-v2").cosines
    assert (OBSERVED.cosine, OFFERED.cosine) == MINILM_COSINES
    assert not facts_of("intfloat/e5-base-v2").is_calibrated


def test_lines_are_not_compared_by_a_model_that_was_not_measured(tmp_path: Path) -> None:
    from memory_pipeline.embeddings.index import Point
    from memory_pipeline.embeddings.opening import open_index
    from memory_pipeline.embeddings.stage import point_id

    encoder = FakeEncoder("port")
    found = {}
    for name in ("all-MiniLM-L6-v2", "intfloat/e5-base-v2"):
        settings, _ = workspace(tmp_path / name.rpartition("/")[2], embedding_model=name)
        with open_index(settings, encoder.dimension) as index:
            index.upsert([Point(point_id("o-1"), encoder.vector("port"), {"date": "2025-03-05"})])
            assert index.vectors([point_id("o-1")])
        found[name] = list(vectors_of(settings, encoder, ["o-1"]))
    assert found == {"all-MiniLM-L6-v2": ["o-1"], "intfloat/e5-base-v2": []}
