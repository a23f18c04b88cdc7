"""The identity files and their links: each way to be broken has its name and a sentence that says what to do."""

import os
from pathlib import Path

import pytest

from memory_pipeline.defs.proposals import judge_identity
from memory_pipeline.operations.identity import IDENTITY_FILES, CheckedPath, look_at_identity
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import DAY, bytes_of, workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With all identity files in `agents`, and MEMORY.md."""
    (tmp_path / "agents").mkdir()
    for name in IDENTITY_FILES:
        (tmp_path / "agents" / name).write_text(f"# {name}\n")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text("# Memory\n")
    return tmp_path


def settings_of(home: Path, *links: Path) -> Settings:
    return workspace(home / "workspace", identity_directory=home / "agents", identity_links=links)[0]


def link(home: Path, *links: Path) -> CheckedPath:
    found = look_at_identity(settings_of(home, *links), DAY)
    assert found is not None
    return found.links[0]


def file(home: Path, name: str) -> CheckedPath:
    found = look_at_identity(settings_of(home), DAY)
    assert found is not None
    return next(looked for looked in found.files if looked.path.name == name)


def test_off_unless_a_directory_is_named(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    assert look_at_identity(settings, DAY) is None
    verdict = judge_identity(settings, DAY)
    assert verdict.passed
    assert "not set" in str(verdict.numbers["judged"])


def test_the_files_are_told_in_read_order(home: Path) -> None:
    found = look_at_identity(settings_of(home), DAY)
    assert found is not None
    names = [*IDENTITY_FILES, "MEMORY.md", "2025-03-05.md"]
    assert [looked.path.name for looked in found.files] == names
    assert [looked.state for looked in found.files] == ["present"] * 5 + ["missing"]
    assert found.broken == []  # today's log is made when there is something to write


@pytest.mark.parametrize(
    ("data", "state", "detail"),
    [
        (None, "missing", "not written yet"),
        (b"", "empty", ""),
        (b"\xef\xbb\xbf \n", "empty", ""),
        (b"first\nsecond \xff\n", "unreadable", "it is not UTF-8"),
    ],
)
def test_what_can_be_wrong_with_a_file(home: Path, data: bytes | None, state: str, detail: str) -> None:
    path = home / "agents" / "SOUL.md"
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    looked = file(home, "SOUL.md")
    assert (looked.state, looked.detail, looked.is_broken) == (state, detail, True)
    assert looked.remedy


def test_a_folder_and_a_pipe_are_no_files(home: Path) -> None:
    for make in (Path.mkdir, os.mkfifo):
        path = home / "agents" / "USER.md"
        path.unlink() if path.is_file() else path.rmdir()
        make(path)
        assert (file(home, "USER.md").state, file(home, "USER.md").detail) == ("unreadable", "it is not a file")


def test_a_file_that_is_a_link_to_nothing_says_where_to(home: Path) -> None:
    (home / "agents" / "SOUL.md").unlink()
    (home / "agents" / "SOUL.md").symlink_to("gone.md")
    assert file(home, "SOUL.md").detail == "a link to gone.md, which does not exist"


def test_a_file_that_may_not_be_read(open_tmp: Path, as_nobody: None) -> None:
    (open_tmp / "agents").mkdir()
    for name in IDENTITY_FILES:
        (open_tmp / "agents" / name).write_text("x")
    (open_tmp / "agents" / "SOUL.md").chmod(0)
    assert (file(open_tmp, "SOUL.md").state, file(open_tmp, "SOUL.md").detail) == ("unreadable", "permission denied")


def test_an_empty_memory_is_no_fault(home: Path) -> None:
    (home / "workspace" / "MEMORY.md").write_text("")
    assert (file(home, "MEMORY.md").state, file(home, "MEMORY.md").is_broken) == ("empty", False)


def test_links_that_lead_to_the_file(home: Path) -> None:
    agents = home / "agents" / "AGENTS.md"
    symbolic, chain, hard, behind = (home / name for name in ("AGENTS.md", "CLAUDE.md", "hard.md", "folder"))
    symbolic.symlink_to(agents)
    chain.symlink_to(symbolic)
    hard.hardlink_to(agents)
    behind.symlink_to(home / "agents")
    for path in (symbolic, chain, hard, behind / "AGENTS.md", agents):
        looked = link(home, path)
        assert (looked.state, looked.is_broken, looked.detail) == ("resolves", False, f"to {agents}")


def test_the_file_itself_may_be_a_link_to_where_a_person_keeps_it(home: Path) -> None:
    agents = home / "agents" / "AGENTS.md"
    agents.rename(home / "dotfiles.md")
    agents.symlink_to(home / "dotfiles.md")
    (home / "link.md").symlink_to(agents)
    assert link(home, home / "link.md").state == "resolves"


def test_links_that_do_not(home: Path) -> None:
    agents, path, other = home / "agents" / "AGENTS.md", home / "my AGENTS.md", home / "other.md"
    other.write_bytes(agents.read_bytes())
    fix = f"`ln -sfn {agents} '{path}'`"

    def made(how: str) -> CheckedPath:
        path.unlink(missing_ok=True)
        if how in ("gone.md", "my AGENTS.md", "other.md", "agents"):
            path.symlink_to(home / how)
        elif how:
            path.write_text(how)
        return link(home, path)

    for how, state, detail in (
        ("", "missing", ""),
        ("gone.md", "broken", f"to {home / 'gone.md'}"),
        ("my AGENTS.md", "broken", f"to {home / 'my AGENTS.md'}"),
        ("other.md", "points elsewhere", f"to {other}"),  # also with the same bytes: it is another file
        ("agents", "points elsewhere", f"to {home / 'agents'}"),
        ("# AGENTS.md\n", "a copy", f"it is not linked to {agents}"),
    ):
        looked = made(how)
        assert (looked.state, looked.detail, looked.is_broken) == (state, detail, True)
        assert fix in looked.remedy


def test_a_folder_in_the_place_of_a_link_is_to_be_moved_first(home: Path) -> None:
    (home / "AGENTS.md").mkdir()
    assert link(home, home / "AGENTS.md").remedy.startswith("Move it away first.")


def test_looking_writes_nothing(home: Path) -> None:
    (home / "copy.md").write_text("old")
    before = bytes_of(home)
    look_at_identity(settings_of(home, home / "copy.md", home / "gone.md"), DAY)
    assert bytes_of(home) == before


def test_the_check_names_what_is_broken(home: Path) -> None:
    assert judge_identity(settings_of(home), DAY).passed
    verdict = judge_identity(settings_of(home, home / "gone.md"), DAY)
    assert not verdict.passed
    assert verdict.offenders == [
        f"{home / 'gone.md'}: missing. Link it: `ln -sfn {home}/agents/AGENTS.md {home}/gone.md`."
    ]


def test_the_command(home: Path) -> None:
    env = {"MEMORY_IDENTITY_DIRECTORY": "~/agents", "MEMORY_IDENTITY_LINKS": "~/gone.md"}
    broken = memory(home, "admin", "identity", env=env)
    assert broken.returncode == 1
    assert f"1. {home}/agents/SOUL.md: present" in broken.stdout
    assert f"-> {home}/gone.md: missing. Link it: `ln -sfn" in broken.stdout
    (home / "gone.md").symlink_to(home / "agents" / "AGENTS.md")
    assert [x["state"] for x in memory_json(home, "admin", "identity", env=env)["links"]] == ["resolves"]


def test_the_command_without_a_directory(home: Path) -> None:
    off = memory(home, "admin", "identity")
    assert off.returncode == 0
    assert "MEMORY_IDENTITY_DIRECTORY" in off.stdout
