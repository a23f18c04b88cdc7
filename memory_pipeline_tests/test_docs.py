"""The documentation tells the truth: all that there is, is named in it, and all that it names is there.

That its tables are what the code says is checked by `make check`, which makes them anew.
"""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

import memory_pipeline
from memory_pipeline.cli.commands import ADMIN, AGENTS, COMMANDS, load_command
from memory_pipeline.cli.main import app
from memory_pipeline.harnesses import HARNESSES
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.settings.sources import settings_of
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.loaded import defs

TOP = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [
        *(
            TOP / name
            for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "prompts/README.md", "benchmarks/README.md")
        ),
        *(TOP / "docs").glob("*.md"),
    ]
)
TEXT = "\n".join(page.read_text("utf-8") for page in PAGES)
OF_THE_TREE = ("memory_pipeline/", "memory_pipeline_tests/", "docs/", "prompts/", "benchmarks/")


def names_of_definitions() -> set[str]:
    repository = defs.get_repository_def()
    assets = [key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()]
    checks = [key.name for key in repository.asset_graph.asset_check_keys]
    jobs = [job.name for job in repository.get_all_jobs() if not job.name.startswith("__")]
    automation = [s.name for s in [*repository.schedule_defs, *repository.sensor_defs]]
    return {*assets, *checks, *jobs, *automation}


NAMES = {
    "assets, checks, jobs, schedules and sensors": names_of_definitions(),
    "settings": {setting.variable for setting in settings_of(Settings).values() if not setting.is_hidden},
    "tables": set(TABLES),
    "columns": {column for table in TABLES.values() for column in table.columns},
    "agents": {harness.name for harness in HARNESSES},
    "commands": {
        *(f"memory {name}" for name in COMMANDS),
        *(f"memory agents {name}" for name in AGENTS),
        *(f"memory admin {name}" for name in ADMIN),
    },
    "prompts": {path.name for path in (TOP / "prompts").glob("*.md") if path.name != "README.md"},
}


@each("sort", NAMES)
def test_everything_has_its_place_in_the_documentation(sort: str) -> None:
    assert len(NAMES[sort]) > 5
    assert sorted(name for name in NAMES[sort] if f"`{name}`" not in TEXT) == []


def test_the_readme_is_a_page_that_people_read() -> None:
    assert len((TOP / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_pictures_of_the_readme_are_small_and_described() -> None:
    shown = dict(re.findall(r"!\[([^\]]+)\]\(docs/pictures/([^)]+)\)", (TOP / "README.md").read_text("utf-8")))
    pictures = {path.name: path for path in (TOP / "docs/pictures").iterdir()}
    assert sorted(shown.values()) == sorted(pictures) and min(map(len, shown)) > 40
    assert [name for name, path in pictures.items() if path.stat().st_size > 150_000] == []


def prose(page: Path) -> str:
    """A page without its blocks of code and without comments."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def code_in(page: Path) -> list[str]:
    """What stands between single backticks, on one line each."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(page))]


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@each("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(target)
    assert broken == []


def is_in_the_tree(name: str) -> bool:
    """Whether it is a path from the top or below the package, or, without a folder, the name of something there."""
    if "/" in name.rstrip("/"):
        return any(any(base.glob(name)) for base in (TOP, TOP / "memory_pipeline"))
    return (TOP / name).exists() or any((TOP / "memory_pipeline").rglob(name.rstrip("/")))


@each("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = [code for code in code_in(page) if code.startswith(OF_THE_TREE) or re.fullmatch(r"[\w*/]+\.py", code)]
    if page.name == "architecture.md":
        named += [code for code in code_in(page) if re.fullmatch(r"[a-z_/]+/", code) and code != "index/"]
    assert sorted(name for name in named if not is_in_the_tree(name)) == []
    modules = re.findall(r"python -m\s+benchmarks\.(\w+)", page.read_text("utf-8"))
    assert sorted(m for m in modules if m != "NAME" and not (TOP / f"benchmarks/{m}.py").exists()) == []


def section_of_architecture(title: str) -> str:
    """The text below a heading of docs/architecture.md."""
    return (TOP / "docs/architecture.md").read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_architecture_names_the_files_of_every_stage() -> None:
    named = code_in(TOP / "docs/architecture.md")
    stages = [path.parent.name for path in (TOP / "memory_pipeline").glob("*/stage.py")]
    assert len(stages) > 5
    assert [stage for stage in stages if len({n for n in named if re.fullmatch(rf"{stage}/.*\.py", n)}) < 2] == []
    assert len([code for code in named if is_in_the_tree(code)]) > 80


def test_architecture_has_a_row_for_every_package() -> None:
    layout = section_of_architecture("Layout")
    packages = [path.parent.name for path in (TOP / "memory_pipeline").glob("*/__init__.py")]
    assert [name for name in packages if f"`{name}/`" not in layout] == []


@each("title", ["Where to change what", "Glossary"])
def test_the_tables_of_architecture_stay_short(title: str) -> None:
    rows = [line for line in section_of_architecture(title).splitlines() if line.startswith("|")]
    assert 10 < len(rows) - 2 <= 30  # without the head


def test_the_lines_for_a_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{tmp_path / 'workspace'}")
    lines = section_of_architecture("From a notebook").partition("```python\n")[2].partition("```")[0]
    shown: list[str] = []
    exec(lines, {"print": shown.append})
    assert shown == [f"{memory_pipeline.__version__}: 0 high observations, 0 proposals"]


def commands_in(page: Path) -> list[list[str]]:
    """The calls of `memory` that a page shows, in blocks and between backticks, as their words."""
    blocks = re.findall(r"^```\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()] + code_in(page)
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("memory ")]


def parse(words: list[str]) -> None:
    """Read the words as the command would, without doing anything. Raises where it would refuse them."""
    name, *rest = words
    if name.startswith("--"):
        known = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
        assert name in {*known, "--help"}, name
        return
    command: Any = load_command(name)
    while rest and hasattr(command, "commands") and not rest[0].startswith("--"):
        inner = rest[0]
        command, rest = load_command(inner) if inner in AGENTS | ADMIN else command.commands[inner], rest[1:]
    if rest:  # else it is only spoken of
        command.make_context(name, list(rest))


@each("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_command_that_is_shown_can_be_called(page: Path) -> None:
    for words in commands_in(page):
        parse(words)


def test_wrong_commands_would_be_noticed() -> None:
    assert sum(len(commands_in(page)) for page in PAGES) > 50
    for wrong in (["rum"], ["run", "--al"], ["settings", "put", "a", "b"], ["--versions"]):
        with pytest.raises(Exception):  # noqa: B017 - of the libraries below typer, which have changed before
            parse(wrong)


def test_the_version_has_a_dated_entry_in_the_changelog() -> None:
    versions = re.findall(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", (TOP / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert versions[0] == memory_pipeline.__version__


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for names in project["optional-dependencies"].values() for name in names),
    ]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (TOP / "constraints.txt").read_text().splitlines()
    }
    names = {re.split(r"[\[>=<]", name)[0].lower() for name in wanted}
    assert names - pinned - {project["name"]} == set()  # extras name each other
