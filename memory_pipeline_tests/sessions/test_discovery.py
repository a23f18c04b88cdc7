"""Which directories are read and which of their files may be sessions; nothing in a directory stops the walk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memory_pipeline.harnesses.model import NotASessionError
from memory_pipeline.sessions.discovery import default_roots, find_sources, roots
from memory_pipeline.sessions.reading import parse, parse_file
from memory_pipeline.settings import SettingError, Settings, load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.harnesses.test_opencode import Talk, database


def named(*directories: Path, defaults: bool = False) -> Settings:
    return load_settings().model_copy(update={"session_dirs": directories, "default_session_dirs": defaults})


def make(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


# --- directories ---


def test_named_directories_are_read_in_their_order_each_once(tmp_path: Path) -> None:
    one, two = tmp_path / "b", tmp_path / "a"
    one.mkdir(), two.mkdir()
    assert roots(named(one, two, one)) == [one, two]


def test_a_named_directory_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """The user counts on its files; going on without them would look like all is well."""
    with pytest.raises(SettingError, match=r"/gone is not a directory that can be read"):
        roots(named(tmp_path / "gone"))


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111], ids=["nothing", "list only", "enter only"])
def test_a_named_directory_that_cannot_be_read_is_an_error(
    mode: int, open_tmp: Path, request: pytest.FixtureRequest
) -> None:
    (open_tmp / "closed").mkdir()
    (open_tmp / "closed").chmod(mode)
    settings = named(open_tmp / "closed")
    request.getfixturevalue("as_nobody")
    with pytest.raises(SettingError, match=r"/closed is not a directory that can be read"):
        roots(settings)


def test_no_directory_at_all_is_no_error() -> None:
    assert roots(named(defaults=True)) == []


def test_default_directories_are_those_that_exist() -> None:
    places = [".pi/agent/sessions", ".claude/projects", ".config/claude/projects"]
    places += [".codex/sessions", ".codex/archived_sessions", ".gemini/tmp", ".local/share/opencode"]
    assert list(default_roots())[: len(places)] == [Path.home() / place for place in places]
    (Path.home() / ".codex/sessions").mkdir(parents=True)
    (Path.home() / ".claude").mkdir()
    (Path.home() / ".claude/projects").write_text("a file")
    assert roots(named(defaults=True)) == [Path.home() / ".codex/sessions"]
    assert roots(named(defaults=False)) == []


@each(
    ("variable", "value", "expected"),
    [
        ("PI_CODING_AGENT_DIR", "/x", "/x/sessions"),
        ("PI_CODING_AGENT_SESSION_DIR", "/x/flat", "/x/flat"),
        ("CLAUDE_CONFIG_DIR", "/x", "/x/projects"),
        ("CLAUDE_CONFIG_DIR", "/x, /y", "/y/projects"),
        ("XDG_CONFIG_HOME", "/x", "/x/claude/projects"),
        ("XDG_DATA_HOME", "/x", "/x/opencode"),
        ("XDG_DATA_HOME", "/x", "/x/omp/sessions"),
        ("GEMINI_CLI_HOME", "/x", "/x/.gemini/tmp"),
        ("CODEX_HOME", "/x", "/x/sessions"),
        ("CODEX_HOME", "/x", "/x/archived_sessions"),
    ],
)
def test_a_harness_that_was_moved_is_found(
    variable: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert Path(expected) in default_roots()


def test_folders_are_found_by_pattern_and_by_settings_of_pi() -> None:
    home = Path.home()
    (home / ".omp/profiles/client/agent/sessions").mkdir(parents=True)
    (home / ".pi/agent").mkdir(parents=True)
    (home / ".pi/agent/settings.json").write_text('{"theme": "dark", "sessionDir": "~/talks"}')
    found = default_roots()
    assert found[home / ".omp/profiles/client/agent/sessions"] == "oh_my_pi"
    assert (found[home / "talks"], found[home / ".pi/agent/sessions"]) == ("pi", "pi")
    for broken in ('{"sessionDir": "talks"}', '{"sessionDir": 7}', "{", "[]"):
        (home / ".pi/agent/settings.json").write_text(broken)
        assert next(iter(default_roots())) == home / ".pi/agent/sessions"


def test_an_agent_that_shares_a_format_is_known_by_its_folder() -> None:
    path = Path.home() / ".omp/agent/sessions/a.jsonl"
    path.parent.mkdir(parents=True)
    header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-03-05T09:00:00Z","cwd":"/w"}\n'
    entry = '{"type":"message","id":"e1","timestamp":"2026-03-05T09:00:01Z","message":{"role":"user","content":"Hi."}}'
    path.write_text(header + entry)
    (source,) = find_sources(roots(named(defaults=True)))
    session, copy = parse(source), parse_file(path)
    assert (session.harness, copy.harness) == ("oh_my_pi", "pi")
    assert [m.message_id for m in session.messages] == [m.message_id for m in copy.messages]


@each("variable", ["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME"])
def test_an_empty_variable_does_not_make_the_current_directory_a_harness(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unset = default_roots()
    monkeypatch.setenv(variable, "")
    assert default_roots() == unset


# --- files ---


def found(*directories: Path) -> list[str]:
    return [
        str(path.relative_to(directories[0]))
        for path in (Path(source.path) for source in find_sources(list(directories)))
    ]


def test_session_files_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    make(tmp_path / "b/c.jsonl", tmp_path / "a/2026/03/d.json", tmp_path / "z.jsonl", tmp_path / "b/a.jsonl")
    assert found(tmp_path) == ["z.jsonl", "a/2026/03/d.json", "b/a.jsonl", "b/c.jsonl"]


def test_a_loop_of_links_does_not_trap_the_walk(tmp_path: Path) -> None:
    make(tmp_path / "a/s.jsonl")
    (tmp_path / "a/up").symlink_to(tmp_path)
    (tmp_path / "self.jsonl").symlink_to(tmp_path / "self.jsonl")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    # the reader tells of what leads nowhere
    assert found(tmp_path) == ["a/s.jsonl", "one", "self.jsonl", "two"]
    with pytest.raises(NotASessionError, match="too many levels of symbolic links"):
        parse_file(tmp_path / "one")


def test_a_linked_folder_is_read_and_each_real_file_once(tmp_path: Path) -> None:
    """However it is reached, a file has the name that it has without a link, where that is among what is read."""
    make(tmp_path / "elsewhere/x/s.jsonl", tmp_path / "root/b/t.jsonl")
    (tmp_path / "root/a").symlink_to(tmp_path / "root/b")
    (tmp_path / "root/linked").symlink_to("../elsewhere")
    (tmp_path / "elsewhere/x/back").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/x/again.jsonl").symlink_to("s.jsonl")
    assert found(tmp_path / "root") == ["b/t.jsonl", "linked/x/s.jsonl"]
    (tmp_path / "root/z").symlink_to(tmp_path / "elsewhere/x")
    assert found(tmp_path / "root") == ["b/t.jsonl", "linked/x/s.jsonl"]
    assert found(tmp_path / "root", tmp_path / "root/linked", tmp_path / "root/b") == ["b/t.jsonl", "linked/x/s.jsonl"]
    (tmp_path / "moved").symlink_to(tmp_path / "root")  # a directory that is read may be a link itself
    assert found(tmp_path / "moved") == ["b/t.jsonl", "linked/x/s.jsonl"]


def test_a_link_to_a_folder_above_is_told_and_not_followed(tmp_path: Path) -> None:
    """It would list a whole home, or the disk."""
    make(tmp_path / "home/notes.json", tmp_path / "home/start/s.jsonl")
    (tmp_path / "home/start/up").symlink_to(tmp_path / "home")
    (tmp_path / "home/start/upper").symlink_to("/")
    assert found(tmp_path / "home/start") == ["s.jsonl", "up", "upper"]
    with pytest.raises(NotASessionError, match="leads to a folder above the session directories"):
        parse_file(tmp_path / "home/start/up")


def test_what_would_block_a_reader_is_told_by_it_and_not_opened(tmp_path: Path) -> None:
    """Opening a FIFO waits for a writer, perhaps for ever."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "null.json").symlink_to("/dev/zero")
    (tmp_path / "folder.jsonl").mkdir()
    make(tmp_path / "s.jsonl")
    assert found(tmp_path) == ["pipe.jsonl", "s.jsonl", "null.json"]
    for name in ("null.json", "pipe.jsonl"):
        with pytest.raises(NotASessionError, match="It is a pipe, a socket or a device"):
            parse_file(tmp_path / name)


def test_a_directory_that_may_not_be_entered_does_not_stop_the_others(
    open_tmp: Path, request: pytest.FixtureRequest
) -> None:
    make(open_tmp / "a/listed.jsonl", open_tmp / "b/s.jsonl", open_tmp / "c/hidden.jsonl")
    (open_tmp / "link.jsonl").symlink_to(open_tmp / "a/listed.jsonl")
    (open_tmp / "a").chmod(0o644)  # its names can be listed, its files not looked at
    (open_tmp / "c").chmod(0o000)
    request.getfixturevalue("as_nobody")
    # what cannot be looked at is told by the reader, not left out silently
    assert found(open_tmp) == ["a/listed.jsonl", "b/s.jsonl", "c"]
    with pytest.raises(NotASessionError, match=r"The folder cannot be listed: permission denied\."):
        parse_file(open_tmp / "c")


@each("folder", ["home", "opencode"])
@each("is_empty", [True, False])
def test_files_beside_a_database_are_found_unless_the_folder_is_opencodes_own(
    folder: str, is_empty: bool, tmp_path: Path
) -> None:
    place = tmp_path / folder
    make(place / "a.jsonl", place / "sub/b.jsonl")
    if is_empty:
        (place / "opencode.db").touch()
    else:
        database(place, Talk().user("Hello"))
    others = [] if folder == "opencode" else ["a.jsonl", "sub/b.jsonl"]
    assert found(place) == ([] if is_empty else ["opencode.db"]) + others
