"""`memory admin audit`: who said a line, and what is wrong with it; and what of a good file is left in peace."""

import subprocess
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.operations.audit import NOT_SHOWN, Audit, audit
from memory_pipeline.operations.memory_text import UnreadableMemoryError
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import DAY, day_after, observation, put, say, workspace

TOKEN = "ghp_16C7e42F292c6912" + "E7710c838347Ae178B4a"  # in two parts, or a scanner of this repository finds it


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    say(
        lake,
        "s1",
        "user: please always squash-merge pull requests into main",
        "assistant: Squash-merging is set up for pull requests.",
        "user: no, that's horrible and ugly nonsense",
        "assistant: The worker retries three times before it gives up.",
        "user: Which team owns the billing worker?",
        "user: never push migrations to production by hand",
    )
    say(lake, "s2", "user: Use npm for installs everywhere", day=day_after(1))
    say(lake, "s3", "user: Use pnpm instead of npm for installs", day=day_after(4))
    put(
        lake,
        "observations",
        observation("Use pnpm instead of npm for installs", session="s3", day=day_after(4), trust="user", kind="rule"),
    )
    return made


def audited(settings: Settings, folder: Path, text: str) -> Audit:
    path = folder / "AGENTS.md"
    path.write_text(text, "utf-8")
    return audit(settings, path)


def found(settings: Settings, folder: Path, text: str) -> list[tuple[int, str]]:
    """All but that nobody said it."""
    of = audited(settings, folder, text)
    return sorted({(number, f.kind) for number, f in of.findings if f.kind != "unsourced"})


def test_each_line_is_told_by_whom_and_when_or_that_nobody_said_it(settings: Settings, tmp_path: Path) -> None:
    of = audited(
        settings,
        tmp_path,
        "# Rules\n- Always squash-merge pull requests into main.\n- The worker retries three times before it gives up\n"
        "- Dashboards are reviewed by the platform team\n",
    )
    merged, worker, dashboards = of.lines
    assert [(s.day, s.session_id, s.role, s.is_verbatim) for s in merged.said] == [(DAY, "s1", "user", True)]
    assert merged.said[0].words == "please always squash-merge pull requests into main"
    assert [(s.role, s.is_verbatim) for s in worker.said] == [("assistant", True)]
    assert [f.kind for f in dashboards.findings] == ["unsourced"]
    assert [audited_line.number for audited_line in of.lines] == [2, 3, 4]
    assert not merged.findings and not worker.findings


def test_a_sentence_that_refuses_what_the_line_orders_is_no_source_of_it(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, "- Push migrations to production by hand\n")
    assert of.lines[0].said == []


def test_a_line_whose_place_something_took_is_stale(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, "- Use npm for installs everywhere\n")
    ((_, finding),) = of.findings
    assert finding.kind == "stale"
    assert f"{day_after(4)}" in finding.reason and "Use pnpm instead of npm" in finding.reason


def test_what_nobody_dates_contradicts_the_words_of_a_user(settings: Settings, tmp_path: Path) -> None:
    assert (1, "contradicting") in found(settings, tmp_path, "- Run npm for installs of the docs\n")


def test_words_said_in_another_project_end_nothing(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path / "ws")
    say(lake, "s3", "user: Use pnpm instead of npm for installs")
    put(
        lake,
        "observations",
        observation("Use pnpm instead of npm for installs", session="s3", trust="user", kind="rule", project="shop"),
    )
    assert found(settings, tmp_path, "- Use npm for installs\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Use pnpm instead of npm\n- Use npm for the docs\n", [(2, "contradicting")]),
        ("- Format with tabs in all files\n- Never format with tabs in all files\n", [(2, "contradicting")]),
        ("- Serve the preview on port 3000\n- Serve the preview on port 4000\n", []),
        ("- Always serve the preview on port 3000\n- Always serve the preview on port 4000\n", [(2, "contradicting")]),
        ("# Python\n- Use spaces, not tabs\n# Go\n- Use tabs in files\n", []),
        ("- Run the linter before commits\n- Run the linter before commits.\n", [(2, "duplicate")]),
        ("- Run the linter before the tests\n- Run the tests before the linter\n", []),
        ("# Web\n- Run the unit tests\n# Api\n- Run the unit tests\n", []),
        ("- Maybe we should switch the worker to Rust\n", [(1, "junk")]),
        ("- Avoid calls that might block the worker\n", []),
        ("- Which team owns the billing worker?\n", [(1, "junk")]),
        ("- Does the worker happen to stop every time?\n- If not, gather data first\n", []),
        ("- Phase 1 must pass before it ships\n- Phase 2 must pass before it ships\n", []),
        ("- Add the new field there (line 35)\n- Add the new field there (line 45)\n", []),
        ("- Build the web app. Use it only when asked for\n- Build the shop. Use it only when asked for\n", []),
        ("- Review the code after each batch of tasks\n- Review the code after each task\n", []),
        ("- Bearer tokens or `Authorization` headers never cross to other hosts\n", []),
        ("- Files are read, not guessed at first\n- Accept what was guessed at first\n", []),
        ("Ask yourself:\n- Does the worker still start?\n- Are the new tests fast enough?\n", []),
        ('- Pause and ask: "Is there a simpler way to do it?"\n', []),
        ("- no, that's horrible and ugly nonsense\n", [(1, "junk")]),
        ("- Ship it on\u200b\u200b Fridays only after review\n", [(1, "junk")]),
        (f"- The deploy token is {TOKEN}\n", [(1, "secret")]),
        ("- Never commit passwords or tokens to the repository\n", []),
    ],
)
def test_what_is_found_in_lines_and_what_is_left_in_peace(
    settings: Settings, tmp_path: Path, text: str, expected: list[tuple[int, str]]
) -> None:
    assert found(settings, tmp_path, text) == expected


def test_a_secret_is_told_by_place_and_kind_and_never_shown(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, f"# Deploy\n- Deploys are made by CI only\n\n```\nexport TOKEN={TOKEN}\n```\n")
    secrets = [(number, f.reason) for number, f in of.findings if f.kind == "secret"]
    assert secrets == [(5, "github-token")]
    assert of.lines[-1].text == NOT_SHOWN
    assert TOKEN[8:20] not in repr(of)


def test_without_a_session_that_was_read_no_line_is_called_unsourced(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path / "ws")
    of = audited(settings, tmp_path, "- Dashboards are reviewed by the platform team\n")
    assert (of.messages, of.findings) == (0, [])


def test_a_wrapped_item_is_one_line(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, "- Always squash-merge pull requests\n  into main.\n- Second rule of the file\n")
    assert [(a.number, a.text) for a in of.lines] == [
        (1, "Always squash-merge pull requests into main."),
        (3, "Second rule of the file"),
    ]


def test_rows_of_a_paragraph_that_are_not_wrapped_are_lines_of_their_own(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, "# Rules\nFormat the sources with ruff\nRun the linter before commits\n")
    assert [(a.number, a.text) for a in of.lines] == [
        (2, "Format the sources with ruff"),
        (3, "Run the linter before commits"),
    ]


def test_each_sentence_of_an_item_has_its_own_place_and_sources(settings: Settings, tmp_path: Path) -> None:
    text = "- Dashboards refresh hourly for everyone. Always squash-merge\n  pull requests into main.\n"
    of = audited(settings, tmp_path, text)
    assert [(a.number, a.text, len(a.said)) for a in of.lines] == [
        (1, "Dashboards refresh hourly for everyone.", 0),
        (1, "Always squash-merge pull requests into main.", 1),
    ]


def repository(root: Path, files: dict[str, str], deleted: str) -> Path:
    """A git repository with these files, and one more that its second commit deletes."""

    def git(*words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", f"{root}", *name, *words], check=True, capture_output=True)

    for name, text in {**files, deleted: "x = 1\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    git("rm", "-q", deleted)
    git("commit", "-qm", "second")
    return root


def test_a_file_that_git_says_was_deleted(settings: Settings, tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"web/tests/data/kiln.json": "{}"}, deleted="src/old.py")
    text = (
        "- Settings are read in `src/old.py`\n- Fixtures are made by `src/never.py`\n"
        "- The old loader `src/old.py` was removed\n- `src/old.py` gibt es nicht mehr\n"
        "- Fixtures of the kiln are in `tests/data/`\n"
    )
    assert found(settings, root, text) == [(1, "stale")]
    assert found(settings, tmp_path, text) == []  # not in that repository


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "There is no file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x00\x01binary", "is not a text file"),
        ("Use tabs".encode("utf-16"), "UTF-16"),
        (b"fine\n\xe4\xf6 caf\xe9\n", "not UTF-8 (line 2)"),
        (b"# Title\n\n```\ncode\n```\n", "no lines to audit"),
        (b"x" * 400_001, "400,001 bytes"),
    ],
)
def test_what_cannot_be_audited_is_said_in_a_sentence(
    settings: Settings, tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "AGENTS.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableMemoryError, match=told.replace("(", r"\(").replace(")", r"\)")) as raised:
        audit(settings, path)
    assert f"{path}" in f"{raised.value}"


def test_a_directory_is_said_to_be_one(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UnreadableMemoryError, match="is a directory"):
        audit(settings, tmp_path)


def test_lines_of_ours_are_dated_by_what_stands_before_them(settings: Settings, tmp_path: Path) -> None:
    of = audited(settings, tmp_path, "- (2025-03-12) Use npm for installs everywhere <!-- p-20250312-001 -->\n")
    assert of.lines[0].since == date(2025, 3, 12)
    assert of.findings == []  # newer than what took its place
