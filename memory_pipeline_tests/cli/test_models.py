"""`memory admin models fetch` downloads a model, with the real client of a hub on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.cli.console import FAILED, MISUSED
from memory_pipeline_tests.text.hub import Hub, serving, tiny_model

NAME = "somebody/tiny-e5"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    folder = tiny_model(tmp_path / "served" / "tiny")
    (folder / "pytorch_model.bin").write_bytes(b"could run code")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    with serving(Hub({NAME: folder})) as started:
        yield started


def models(tmp_path: Path, url: str, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`memory admin models ARGS` in a process of its own: the client reads the hub's address when it is imported."""
    return python(tmp_path, "-m", "memory_pipeline.cli.main", "admin", "models", *args, HF_ENDPOINT=url, **more)


def python(tmp_path: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "MEMORY_WORKSPACE": str(tmp_path / "memory")}
    (tmp_path / "home").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *args], env=env | more, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def kept(tmp_path: Path) -> list[str]:
    """The files of models in the cache."""
    cache = tmp_path / "home" / ".cache" / "huggingface" / "hub"
    return sorted(f"{p.relative_to(cache)}" for p in cache.glob("models--*/**/*") if p.is_file())


def one_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


@pytest.mark.slow
def test_a_model_is_fetched_shown_and_used_without_the_network(tmp_path: Path, hub: Hub) -> None:
    done = models(tmp_path, hub.url, "fetch", NAME, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "4.7 MB" in done.stdout and "licence                 mit" in done.stdout
    assert f"`memory settings set embedding_model {NAME}`" in done.stdout
    assert not any("pytorch_model.bin" in path or "onnx" in path for path in kept(tmp_path))
    rows = json.loads(models(tmp_path, "http://127.0.0.1:9", "--json", EMBEDDING_MODEL=NAME).stdout)
    assert rows["problem"] is None
    assert [(row["name"], row["is_active"], row["compares_lines"]) for row in rows["models"]] == [
        ("all-MiniLM-L6-v2", False, True),
        (NAME, True, False),
    ]
    asked = len(hub.asked)
    code = f"from memory_pipeline.text.encoder import Encoder; print(len(Encoder({NAME!r}).encode(['a'])[0]))"
    used = python(tmp_path, "-c", code, HF_ENDPOINT=hub.url)
    assert used.stdout == "32\n", used.stderr
    assert len(hub.asked) == asked


@pytest.mark.slow
def test_a_download_that_breaks_off_is_reported_and_can_be_repeated(tmp_path: Path, hub: Hub) -> None:
    hub.breaks_off = "model.safetensors"
    done = models(tmp_path, hub.url, "fetch", NAME, "--yes")
    assert done.returncode == FAILED
    assert one_line(done.stderr).startswith(f"{NAME} cannot be downloaded from {hub.url} (")
    listed = models(tmp_path, hub.url, EMBEDDING_MODEL=NAME)
    assert NAME not in listed.stdout.splitlines()[1:-1] and "cannot be loaded from this machine" in listed.stdout
    hub.breaks_off = None
    assert models(tmp_path, hub.url, "fetch", NAME, "--yes").returncode == 0


def test_an_unreachable_hub_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = models(tmp_path, url, "fetch", NAME, "--yes")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert one_line(done.stderr).startswith(f"{NAME} cannot be downloaded from {url} (ConnectError: ")
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody/nothing", "has no public model nobody/nothing; check the name"),
        ("no-owner", "has no public model sentence-transformers/no-owner;"),
        ("a//b", "has no public model a//b; check the name, which has the form OWNER/NAME"),
    ],
)
def test_a_wrong_name_is_told(name: str, said: str, tmp_path: Path, hub: Hub) -> None:
    done = models(tmp_path, hub.url, "fetch", name, "--yes")
    assert done.returncode == FAILED
    assert said in one_line(done.stderr)


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("model.safetensors", "has no weights as safetensors"),
        ("modules.json", "is not a model of sentence-transformers"),
    ],
)
def test_what_cannot_be_used_is_not_fetched(removed: str, said: str, tmp_path: Path, hub: Hub) -> None:
    (hub.models[NAME] / removed).unlink()
    done = models(tmp_path, hub.url, "fetch", NAME, "--yes")
    assert done.returncode == FAILED
    assert said in one_line(done.stderr)
    assert kept(tmp_path) == []


def test_terms_offline_and_nobody_to_ask(tmp_path: Path, hub: Hub) -> None:
    done = models(tmp_path, hub.url, "fetch", NAME)
    assert done.returncode == MISUSED
    assert "`--yes` skips it" in one_line(done.stderr)
    done = models(tmp_path, hub.url, "fetch", NAME, "--yes", HF_HUB_OFFLINE="1")
    assert done.returncode == FAILED
    assert "HF_HUB_OFFLINE is set" in one_line(done.stderr)
    hub.gated = True
    done = models(tmp_path, hub.url, "fetch", NAME, "--yes")
    assert done.returncode == FAILED
    assert "only to those who accept its terms" in one_line(done.stderr)
    assert kept(tmp_path) == []


def test_the_bundled_model_needs_no_fetching(tmp_path: Path) -> None:
    done = models(tmp_path, "http://127.0.0.1:9", "fetch", "all-MiniLM-L6-v2")
    assert (done.returncode, done.stdout) == (0, "all-MiniLM-L6-v2 is bundled; there is nothing to download.\n")
    assert "all-MiniLM-L6-v2 (set)" in models(tmp_path, "http://127.0.0.1:9").stdout
