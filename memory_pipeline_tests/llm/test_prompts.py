"""Prompts are files: read when they are used, filled once, and wrong ones are named."""

from pathlib import Path

import pytest

from memory_pipeline.errors import CannotGoOnError
from memory_pipeline.llm import prompts
from memory_pipeline.llm.prompts import NoSuchPromptError, filled, folder, hash_of, text_of


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of prompts in place of the project's."""
    monkeypatch.setattr(prompts, "folder", lambda: tmp_path)
    return tmp_path


def test_the_projects_prompts_are_found() -> None:
    assert {path.stem for path in folder().glob("*.md")} >= {"observer", "priorities", "user_turn", "ask_again"}
    assert "<observations>" in text_of("format_tags") and "{{format}}" in text_of("observer")


def test_each_place_is_filled(own: Path) -> None:
    (own / "greeting.md").write_text("Dear {{name}}, {{name}}! {{ spaced }} {single}", "utf-8")
    assert filled("greeting", {"name": "Zoë"}) == "Dear Zoë, Zoë! {{ spaced }} {single}"


def test_what_is_filled_in_is_never_looked_at(own: Path) -> None:
    r"""A transcript may hold anything: places, and what a pattern would take for a group."""
    (own / "turn.md").write_text("{{one}} {{two}}", "utf-8")
    assert filled("turn", {"one": r"{{two}} \1 \g<0>", "two": "{{one}}"}) == r"{{two}} \1 \g<0> {{one}}"


@pytest.mark.parametrize(
    ("template", "values", "says"),
    [
        ("no place", {"transcript": "x"}, r"turn\.md does not have \{\{transcript\}\}\.$"),
        ("{{transcript}} {{name}}", {"transcript": "x"}, r"turn\.md has the unknown place \{\{name\}\}\.$"),
        ("{{transkript}}", {"transcript": "x", "b": ""}, r"does not have \{\{b\}\}, \{\{transcript\}\}\.$"),  # both
    ],
)
def test_an_edit_that_loses_a_place_or_invents_one_is_named(
    own: Path, template: str, values: dict[str, str], says: str
) -> None:
    (own / "turn.md").write_text(template, "utf-8")
    with pytest.raises(NoSuchPromptError, match=says):
        filled("turn", values)


def test_a_prompt_that_cannot_be_read_is_named(own: Path) -> None:
    with pytest.raises(CannotGoOnError, match=r"gone\.md cannot be read"):  # every other day would miss it too
        text_of("gone")
    (own / "latin.md").write_bytes("für".encode("latin-1"))
    with pytest.raises(NoSuchPromptError, match=r"latin\.md is not UTF-8"):
        text_of("latin")


def test_the_hash_changes_with_every_edit_and_with_nothing_else(own: Path) -> None:
    (own / "a.md").write_text("ab", "utf-8")
    (own / "b.md").write_text("c", "utf-8")
    first = hash_of("a", "b")
    assert len(first) == 8
    assert first == hash_of("a", "b") != hash_of("b", "a")
    (own / "a.md").write_text("a", "utf-8")
    (own / "b.md").write_text("bc", "utf-8")
    assert hash_of("a", "b") != first
