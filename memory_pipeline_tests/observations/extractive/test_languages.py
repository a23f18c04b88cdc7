"""Cues are English; for other languages a session goes by structure, and says so."""

from datetime import UTC, datetime, timedelta

import pytest

from memory_pipeline.observations.extractive.observer import ExtractiveObserver
from memory_pipeline.observations.flags import NO_CUES
from memory_pipeline.observations.model import Fact, WindowMessage
from memory_pipeline.text.cues import is_english

START = datetime(2025, 3, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("please move the worker to its own service and run all of the tests again", True),
        ("omg use rgb values in the themes, no rgb indices at all, that is what i want you to do", True),
        ("fix tests", True),  # too few words to tell
        ("", True),
        ("```\nfür alle die das nicht wissen wollen oder können und sollen\n```", True),  # only code
        ("永远不要在这个仓库里使用npm，请使用pnpm。", False),
        ("Bitte verschiebe den Worker in einen eigenen Dienst und lass danach alle Tests noch einmal laufen", False),
        ("mueve el trabajador a su propio servicio y vuelve a ejecutar todas las pruebas, por favor", False),
        ("перенеси обработчик в отдельный сервис и запусти все тесты ещё раз", False),
        ("小白，把 send_email.py 程式移至 pi-mono 專案功能模組內", False),
    ],
)
def test_what_is_english(text: str, english: bool) -> None:
    assert is_english([text]) is english


GERMAN = (
    "user: Der Export schreibt die Datei auf dem Server in einer falschen Kodierung, bitte such nach der Ursache.",
    "assistant: Die Ursache liegt in `src/export.py`: die Datei wird ohne Angabe der Kodierung geöffnet, und auf dem "
    "Server gilt dafür noch immer `latin-1` statt `utf-8`, weshalb jeder Umlaut in `report.csv` zerstört wird.",
    "tool: ok",
    "user: Niemals ohne ausdrückliche Kodierung öffnen, das gilt ab jetzt für alle Dateien im Projekt.",
    "assistant: Alle Stellen in `src/export.py` und `src/import.py` öffnen ihre Dateien nun mit `utf-8`.",
)


def facts(*turns: str) -> list[Fact]:
    parts = [turn.split(": ", 1) for turn in turns]
    said = [WindowMessage(f"m{i}", role, START + timedelta(minutes=i), text) for i, (role, text) in enumerate(parts)]
    return [f for s in ExtractiveObserver(0.5).observe(said) for f in s.facts]


def test_a_session_in_another_language_is_observed_and_flagged() -> None:
    found = facts(*GERMAN)
    assert any(f.text.startswith("Niemals ohne") and f.trust == "user" for f in found)
    assert {f.flags for f in found} == {(NO_CUES,)}


def test_an_english_session_is_not_flagged() -> None:
    found = facts(
        "user: The export writes the file on the server with a wrong encoding, please look for the cause of it.",
        "user: Never open a file without an encoding, from now on and in all of the project.",
    )
    assert found
    assert {f.flags for f in found} == {()}


def test_each_speaker_is_looked_at_alone() -> None:
    """A person may write German to a model that answers in English."""
    english = (
        "assistant: I changed `src/export.py`, so that all of the files are now opened with `utf-8` on the server."
    )
    flags = {f.trust: f.flags for f in facts(GERMAN[0], english, GERMAN[3], "user: " + GERMAN[3][6:].upper())}
    assert flags["user"] == (NO_CUES,)
    assert flags.get("assistant", ()) == ()
