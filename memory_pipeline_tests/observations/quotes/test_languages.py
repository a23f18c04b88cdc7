"""A session is observed by the cues of its language; where that has none it goes by structure, and says so."""

from datetime import UTC, datetime, timedelta

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import NO_CUES, Fact, WindowMessage
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
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


ITALIAN = (
    "user: L'esportazione scrive il file sul server con una codifica sbagliata, cerca la causa per favore.",
    "user: Non aprire mai un file senza una codifica esplicita, questo vale da adesso per tutti i file del progetto.",
)


def test_a_rule_in_german_is_a_rule() -> None:
    found = facts(*GERMAN)
    (rule,) = [f for f in found if f.text.startswith("Niemals ohne")]
    assert (rule.kind, rule.priority, rule.trust) == ("rule", "high", "user")
    assert {f.flags for f in found} == {()}


def test_a_session_in_a_language_without_cues_is_observed_and_flagged() -> None:
    found = facts(
        ITALIAN[0], "assistant: " + "Sto guardando i file dell'esportazione e i log del server. " * 4, ITALIAN[1]
    )
    assert any(f.text.startswith("Non aprire mai") and f.trust == "user" for f in found)
    assert {f.flags for f in found} == {(NO_CUES,)}


@each(
    ("request_", "rule"),
    [
        (
            "Schau dir bitte das Projekt an und gib mir einen Überblick",
            "Ab jetzt immer Postgres verwenden, niemals SQLite",
        ),
        ("Regarde le projet et fais-moi un résumé des modules", "Utilise toujours Postgres, jamais SQLite"),
        ("Mira el proyecto y dame un resumen de los módulos", "Usa siempre Postgres, nunca SQLite"),
        ("プロジェクトを見て全体の概要を教えてください", "データベースは必ずPostgresを使ってください"),
        ("帮我看一下这个项目，给我一个整体的概述", "数据库一律使用Postgres，不要用SQLite"),
    ],
)
def test_a_rule_is_observed_and_a_request_of_the_moment_is_not(request_: str, rule: str) -> None:
    talk = (f"user: {request_}", "assistant: OK.", f"user: {rule}", "assistant: OK.", f"user: {GERMAN[0][6:]}")
    found = {f.text: f for f in facts(*talk)}
    assert request_ not in found
    assert (found[rule].kind, found[rule].priority, found[rule].flags) == ("rule", "high", ())


def test_a_no_in_german_is_no_consent() -> None:
    proposal = "Soll ich die Replik behalten und den Verkehr erst im Sommer auf den zweiten Server umleiten?"
    for answer, kinds in (("nein", set()), ("ja, mach das", {"decision"})):
        found = facts(*GERMAN, f"assistant: {proposal}", f"user: {answer}")
        assert {f.kind for f in found if len(f.evidence) > 1} == kinds


def test_an_english_session_is_not_flagged() -> None:
    found = facts(
        "user: The export writes the file on the server with a wrong encoding, please look for the cause of it.",
        "user: Never open a file without an encoding, from now on and in all of the project.",
    )
    assert found
    assert {f.flags for f in found} == {()}


def test_each_speaker_is_looked_at_alone() -> None:
    """A person may write Italian to a model that answers in English."""
    english = (
        "assistant: I changed `src/export.py`, so that all of the files are now opened with `utf-8` on the server."
    )
    flags = {f.trust: f.flags for f in facts(ITALIAN[0], english, ITALIAN[1])}
    assert flags["user"] == (NO_CUES,)
    assert flags.get("assistant", ()) == ()
