"""Imports point one way: the contracts stand in pyproject.toml. And heavy libraries are loaded when they are needed."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest

import memory_pipeline

PYPROJECT = Path(memory_pipeline.__file__).parents[1] / "pyproject.toml"
HEAVY = {
    *("torch", "transformers", "sentence_transformers", "qdrant_edge", "qdrant_client"),
    *("pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices"),
}
WRAPPERS = {
    *("memory_pipeline.embeddings.edge", "memory_pipeline.embeddings.server"),
}
"""They are the wrappers of heavy libraries, and themselves loaded when they are needed."""


def test_imports_point_one_way() -> None:
    # in a process of its own: it switches off the loggers that other tests read
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as go; go()", "--no-cache"]
    done = subprocess.run(command, cwd=PYPROJECT.parent, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


def test_the_contract_knows_every_library_of_dagster() -> None:
    graph = grimp.build_graph("memory_pipeline", include_external_packages=True, cache_dir=None)
    assert {name for name in graph.modules if name.startswith("dagster")} == {
        "dagster",
        "dagster_duckdb",
        "dagster_webserver",
    }


@pytest.mark.slow
def test_heavy_libraries_are_not_loaded_with_any_module() -> None:
    """The code server loads every module; torch would cost it seconds and 500 MB."""
    names = [module.name for module in pkgutil.walk_packages(memory_pipeline.__path__, "memory_pipeline.")]
    assert set(names) > WRAPPERS
    assert all(map(find_spec, HEAVY)), "a library that is not there says nothing"
    code = (
        "import importlib, json, sys\n"
        f"for name in {sorted({*names} - WRAPPERS)}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in {sorted(HEAVY)} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
