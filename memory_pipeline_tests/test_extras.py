"""The core works without the extras, and a setting that needs one is told so before anything is done."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import memory_pipeline
from memory_pipeline.cli.console import MISUSED
from memory_pipeline.settings import Settings
from memory_pipeline.settings.loading import EXTRAS, is_installed, missing_extras
from memory_pipeline_tests.cases import each

ROOT = Path(memory_pipeline.__file__).parent
REFUSED = (
    *("pydantic_ai", "genai_prices", "openai", "anthropic", "google.genai", "qdrant_client"),
    *("dagster_postgres", "psycopg2", "torch", "transformers", "sentence_transformers"),
)
"""What the extras install and nothing of the core brings along."""
WITHOUT = f"""
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {REFUSED} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
COMMAND = f"{WITHOUT}\nfrom memory_pipeline.cli.main import main; main()"


def python(code: str, *args: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_refused_packages_are_installed_and_refused(tmp_path: Path) -> None:
    """Else the tests below would show nothing."""
    assert [name for name in REFUSED if find_spec(name) is None] == []
    code = f"""{WITHOUT}
from importlib import import_module
for name in {REFUSED}:
    try:
        import_module(name)
    except ImportError:
        continue
    sys.exit(f"{{name}} was imported")
"""
    done = python(code, home=tmp_path)
    assert done.returncode == 0, done.stderr


def test_everything_that_dagster_loads_is_there_without_them(tmp_path: Path) -> None:
    code = f"{WITHOUT}\nfrom memory_pipeline.definitions import defs; print(len(defs().get_repository_def().asset_graph"
    done = python(f"{code}.get_all_asset_keys()))", home=tmp_path, MEMORY_WORKSPACE=f"{tmp_path}")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_status_needs_none_nor_does_a_command_as_model(tmp_path: Path) -> None:
    done = python(COMMAND, "status", "--json", home=tmp_path, OBSERVER_MODEL="claude -p --model haiku")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["days_with_sessions"] == 0


def test_only_what_needs_an_extra_imports_its_packages() -> None:
    """Also inside of functions; so a run, which is not tried out here, needs none."""
    importing = set()
    for path in ROOT.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [f"{node.module}" for node in nodes if isinstance(node, ast.ImportFrom)]
        if any(name == refused or name.startswith(f"{refused}.") for name in names for refused in REFUSED):
            importing.add(f"{path.relative_to(ROOT)}")
    assert importing == {
        "llm/backends/provider.py",
        "llm/ledger.py",
        "embeddings/server.py",
        "text/encoder.py",
    }


@pytest.mark.slow
@each(
    ("setting", "value", "extra"),
    [
        ("OBSERVER_MODEL", "openai:gpt-5-mini", "models"),
        ("REFLECTOR_MODEL", "anthropic:claude-haiku-4-5", "models"),
        ("QDRANT_URL", "http://127.0.0.1:9", "server"),
        ("EMBEDDING_MODEL", "intfloat/e5-small-v2", "encoders"),
    ],
)
def test_a_missing_extra_is_one_sentence_and_nothing_is_written(
    setting: str, value: str, extra: str, tmp_path: Path
) -> None:
    command = "ui" if extra == "todoist" else "run"
    done = python(COMMAND, command, home=tmp_path, **{setting: value})
    assert done.returncode == MISUSED
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(setting) and sentence.endswith(f"`pip install 'memory-pipeline[{extra}]'`.")
    assert [*tmp_path.iterdir()] == []


def test_only_other_models_need_their_libraries(tmp_path: Path) -> None:
    code = f"{WITHOUT}\nimport sys; from memory_pipeline.text.encoder import Encoder; e = Encoder(*sys.argv[1:])"
    code += "; print(len(e.encode(['Port 8080.'])[0]), len(e.encode_query('which port?')))"
    done = python(code, home=tmp_path)
    assert done.stdout.split() == ["384", "384"], done.stderr
    refused = python(code, "intfloat/e5-small-v2", home=tmp_path).stderr.splitlines()[-1]
    assert refused.endswith("needs packages that are not installed: `pip install 'memory-pipeline[encoders]'`.")


def test_here_all_extras_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(is_installed(extra) for extra in EXTRAS)
    monkeypatch.setenv("OBSERVER_MODEL", "openai:gpt-5-mini")
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("EMBEDDING_MODEL", "intfloat/e5-small-v2")
    assert missing_extras(Settings()) == []
