"""The project of a session, told from what sessions say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_pipeline.scope import repository_of
from memory_pipeline.sessions.projects import Place, Projects
from memory_pipeline_tests.cases import each

FIRST = datetime(2026, 3, 1, 9, tzinfo=UTC)


def names(*places: Place) -> list[str | None]:
    """The projects of places whose sessions began one after the other."""
    timed = [place._replace(began_at=FIRST + timedelta(hours=i)) for i, place in enumerate(places)]
    projects = Projects(timed)
    return [projects.of(place) for place in timed]


@each(
    ("cwd", "branch"),
    [
        ("/Users/ada/src/kiln", "main"),
        ("/Users/ada/src/kiln/", "main"),
        ("/home/ada/src/kiln/.worktrees/feature-x", "feature-x"),
        ("/home/ada/src/kiln/.worktrees/ada/fix-clock/cmd", "ada/fix-clock"),
        ("/home/ada/src/kiln/.claude/worktrees/brave-otter", "HEAD"),
        ("/home/ada/src/kiln/.git/worktrees/x", ""),
        ("/home/ada/src/kiln/worktrees/x/web", ""),
        ("/home/ada/src/kiln-worktrees/x", ""),
        ("/home/ada/src/kiln.worktrees/x/src", ""),
        ("/home/ada/src/kiln-fix-clock", "ada/fix-clock"),
        ("/home/ada/src/kiln-ada-fix-clock", "ada/fix-clock"),
        ("/home/ada/src/kiln_fix", "fix"),
        ("/home/ada/src/kiln.git", "main"),
        ("/home/ada/src/kiln.git/worktrees/x", ""),
        ("/home/ada/.codex/worktrees/a1b2/kiln", "HEAD"),
        ("/home/ada/.cursor/worktrees/kiln/Xq7w", "HEAD"),
        ("/home/ada/.claude-worktrees/kiln/brave-otter", ""),
        (r"C:\Users\ada\src\kiln", ""),
        (r"c:\Users\ada\src\kiln\.worktrees\x", ""),
        (r"\\?\D:\kiln", ""),
        ("D:/code/kiln", ""),
        ("/mnt/c/Users/ada/kiln", ""),
        (r"\\wsl.localhost\Ubuntu\home\ada\kiln", ""),
        ("/tmp/kiln", ""),
        ("/private/tmp/kiln", ""),
        *((f"{home}/kiln", "") for home in ("/workspaces", "/root", "/home/ada/Documents")),
        ("/data/data/com.termux/files/home/kiln", ""),
    ],
)
def test_a_repository_its_worktrees_and_its_folder_on_any_system_have_one_name(cwd: str, branch: str) -> None:
    assert names(Place(cwd, branch)) == ["kiln"]


@each(
    "cwd",
    [
        *("", " ", "[trimmed for fixture]", "src/kiln", "/", "C:\\", "/Users", "/Users/ada", "/home/ada/", "/root"),
        *("/home/ada/Desktop", r"C:\Users\ada\OneDrive\Documents", "/tmp", "/private/tmp", "/var/tmp"),
        *("/var/folders/x1/y2/T/tmp.Ab12", "/tmp/tmpx8k2", r"C:\Users\ada\AppData\Local\Temp"),
    ],
)
def test_a_home_a_temporary_folder_and_no_folder_are_no_project(cwd: str) -> None:
    assert names(Place(cwd, "main")) == [None]


def test_a_branch_that_ends_like_the_name_of_a_repository_takes_nothing_from_it() -> None:
    folders = {"my-main": "main", "feature": "feature", "web-ui": "ui2"}
    assert names(*(Place(f"/home/ada/{folder}", branch) for folder, branch in folders.items())) == [
        "my-main",
        "feature",
        "web-ui",
    ]


def test_a_folder_below_a_repository_that_another_session_knows_is_that_repository() -> None:
    top, below = Place("/home/ada/src/kiln", "main"), Place("/home/ada/src/kiln/web/app", "main")
    assert names(below, top) == ["kiln", "kiln"]
    assert names(top, below) == ["kiln", "kiln"]


def test_a_folder_that_is_in_no_repository_swallows_nothing() -> None:
    assert names(Place("/home/ada/src"), Place("/home/ada/src/kiln", "main")) == ["src", "kiln"]


def test_one_repository_below_several_homes_is_one_project() -> None:
    homes = ["/Users/ada/src/acme", "/home/bob", "/Users/eve/Work/devenv", r"C:\Users\kim", "/workspaces"]
    assert set(names(*(Place(f"{home}/cli", "main") for home in homes))) == {"cli"}


def test_two_folders_of_one_name_below_one_home_are_told_apart_and_the_older_keeps_its_name() -> None:
    places = [Place(f"/home/ada/{folder}/api", "main") for folder in ("work", "private", "more/private")]
    assert names(*places) == ["api", "private/api", "more/private/api"]
    assert names(*places[:1]) == ["api"]


def test_the_repository_gives_the_name_of_all_its_folders_whoever_says_it() -> None:
    second, remote = "/home/ada/src/kiln-2", "acme/kiln"
    places = [Place(second), Place(second, "main", remote), Place("/home/ada/src/kiln", "main", remote)]
    assert names(*places) == ["kiln", "kiln", "kiln"]


@each(
    ("url", "name"),
    [
        ("git@github.com:acme/kiln.git", "acme/kiln"),
        ("https://ada:s3cret@git.example.com/group/acme/kiln", "acme/kiln"),
        ("ssh://git@host:22/acme/kiln.js.git/", "acme/kiln.js"),
        ("https://github.com/..git", ""),
        ("[trimmed for fixture]", ""),
        ("", ""),
    ],
)
def test_of_a_remote_only_owner_and_name_are_taken(url: str, name: str) -> None:
    assert repository_of(url) == name
