"""Imports point one way: what stages share knows no stage, a stage only earlier ones, and Dagster is at the edge."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import memory_pipeline

ROOT = Path(memory_pipeline.__file__).parent
STAGES = ("sessions", "observations", "embeddings", "reflections", "distillation", "proposals", "friction")
"""In the order of the asset graph; each may import the ones before it."""
SHARED = ("settings", "memory_json", "extras", "days", "lake", "schemas", "text", "files", "llm", "stage", "verdict")
"""What all stages stand on."""
ABOVE_THE_STAGES = ("planning", "orchestration", "definitions", "cli", "recall", "quality")
WITH_DAGSTER = ("assets.py", "checks.py", "sensor.py", "schedule.py", "orchestration.py", "definitions.py")
WITH_DAGSTER_PATHS = ("cli/dagster_runs.py",)
HEAVY = {
    *("torch", "transformers", "sentence_transformers", "qdrant_edge", "qdrant_client"),
    *("pydantic_ai", "openai", "anthropic", "google", "genai_prices"),
}


def name_of(path: Path) -> str:
    """`memory_pipeline/text/tokens.py` is memory_pipeline.text.tokens."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(tree: ast.AST, package: str = "") -> Iterator[str]:
    """The names of modules that are imported anywhere below; `from a import b` gives a, and a.b where that is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module
            yield from (full for alias in node.names if (full := f"{module}.{alias.name}") in MODULES)


def package_of(name: str) -> str:
    return name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]


def imports_of(name: str) -> set[str]:
    """Everything that a module imports, also inside of its functions and for its types only."""
    return set(imported(ast.parse(MODULES[name].read_text("utf-8")), package_of(name)))


def imports_at_load(name: str) -> set[str]:
    """What is imported when the module is: not inside of functions, not for types only."""
    return set(_at_load(ast.parse(MODULES[name].read_text("utf-8")).body, package_of(name)))


def _at_load(body: list[ast.stmt], package: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(ast.Module([node], []), package)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _at_load(node.orelse, package)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ("body", "orelse", "finalbody", "handlers"):
                for child in getattr(node, inner, []):
                    yield from _at_load(child.body if isinstance(child, ast.ExceptHandler) else [child], package)


def part(name: str) -> str:
    """The folder or top-level module that a module belongs to; "" for another library."""
    pieces = name.split(".")
    return pieces[1] if pieces[0] == "memory_pipeline" and len(pieces) > 1 else ""


def modules_of(*parts: str) -> list[str]:
    return [name for name in MODULES if part(name) in parts]


def test_every_part_has_its_place() -> None:
    """A new folder or module must be put into one of the lists above."""
    known = {*STAGES, *SHARED, *ABOVE_THE_STAGES, ""}
    data = {path.name for path in ROOT.iterdir() if path.is_dir() and not any(path.rglob("*.py"))}
    assert {part(name) for name in MODULES} - known - data == set()
    assert set(STAGES) < {part(name) for name in MODULES}


@pytest.mark.parametrize("name", modules_of(*SHARED))
def test_what_stages_share_imports_no_stage(name: str) -> None:
    assert {other for other in imports_of(name) if part(other) in (*STAGES, *ABOVE_THE_STAGES)} == set()


@pytest.mark.parametrize("name", modules_of(*STAGES))
def test_a_stage_imports_only_earlier_stages(name: str) -> None:
    own = part(name)
    later = set(STAGES[STAGES.index(own) + 1 :])
    assert {other for other in imports_of(name) if part(other) in later} == set()


@pytest.mark.parametrize("name", modules_of("friction"))
def test_friction_hangs_on_the_embeddings_and_takes_nothing_from_proposals(name: str) -> None:
    """But for how words are read: what takes another line's place is the same for both."""
    taken = {other for other in imports_of(name) if part(other) == "proposals"}
    assert taken <= {"memory_pipeline.proposals.wording"}


def test_only_the_session_sensor_knows_the_plan() -> None:
    """It asks for whole days, so it stands above the stages although it lies with the sessions."""
    knowing = {name for name in modules_of(*STAGES) if "planning" in {part(other) for other in imports_of(name)}}
    assert knowing == {"memory_pipeline.sessions.sensor"}


@pytest.mark.parametrize("name", [n for n in modules_of(*STAGES) if MODULES[n].name not in WITH_DAGSTER])
def test_the_work_of_a_stage_does_not_know_how_it_is_run(name: str) -> None:
    """Only the thin files at the edge may; the rest serves the command line too."""
    assert {other for other in imports_of(name) if part(other) in ABOVE_THE_STAGES} == set()


@pytest.mark.parametrize("name", MODULES)
def test_only_the_edge_imports_dagster(name: str) -> None:
    path = MODULES[name]
    if path.name in WITH_DAGSTER or f"{path.relative_to(ROOT)}" in WITH_DAGSTER_PATHS:
        return
    assert {other for other in imports_of(name) if other.split(".")[0].startswith("dagster")} == set()


@pytest.mark.parametrize("name", ["verdict", "observations.judges", "observations.language_model"])
def test_what_is_judged_and_observed_needs_no_dagster(name: str) -> None:
    """Not even through what it imports."""
    code = f"import sys; sys.modules['dagster'] = None; import memory_pipeline.{name}"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_every_file_that_may_import_dagster_is_there() -> None:
    """A renamed file would leave a hole in the rule above."""
    names = {path.name for path in MODULES.values()}
    assert set(WITH_DAGSTER) <= names
    assert all((ROOT / path).exists() for path in WITH_DAGSTER_PATHS)


def test_importing_has_no_circles() -> None:
    """Also through packages: to import a.b is to import a first."""
    graph: dict[str, set[str]] = {}
    for name in MODULES:
        others = {other for other in imports_at_load(name) if other in MODULES}
        parents = {other.rpartition(".")[0] for other in others} & set(MODULES)
        graph[name] = {other for other in others | parents if other != name and not name.startswith(f"{other}.")}
    try:
        TopologicalSorter(graph).prepare()
        circle: list[str] = []
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


@pytest.mark.parametrize(
    "name", [n for n in MODULES if part(n) != "cli" and MODULES[n].name not in ("edge.py", "server.py")]
)
def test_heavy_libraries_are_not_imported_with_a_module(name: str) -> None:
    """The code server loads every module; torch would cost it seconds and 500 MB."""
    assert {other for other in imports_at_load(name) if other.split(".")[0] in HEAVY} == set()


# --- the rules can fail ---


@pytest.mark.parametrize(
    ("source", "at_load", "anywhere"),
    [
        ("import os", {"os"}, {"os"}),
        ("from memory_pipeline.text import tokens", {"memory_pipeline.text", "memory_pipeline.text.tokens"}, None),
        ("from . import lake", {"memory_pipeline", "memory_pipeline.lake"}, None),
        ("from .text.tokens import estimate", {"memory_pipeline.text.tokens"}, None),
        ("def f():\n    import torch", set(), {"torch"}),
        ("class A:\n    import torch", {"torch"}, None),
        ("try:\n    import a\nexcept ImportError:\n    import b\nelse:\n    import c", {"a", "b", "c"}, None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a", {"typing"}, {"typing", "a"}),
    ],
)
def test_imports_are_seen_wherever_they_stand(source: str, at_load: set[str], anywhere: set[str] | None) -> None:
    tree = ast.parse(source)
    assert set(_at_load(tree.body, "memory_pipeline")) == at_load
    assert set(imported(tree, "memory_pipeline")) == (at_load if anywhere is None else anywhere)
