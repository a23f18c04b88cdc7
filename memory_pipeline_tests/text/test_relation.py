"""The same thing with the opposite sign, and nothing else, takes back what was said before."""

from memory_pipeline.text.relation import REPLACES, is_same, relation
from memory_pipeline_tests.cases import each

TRACK = "Let's track command errors with the usage."


@each(
    ("text", "older"),
    [
        ("I want to track errors", "i don't want to track command errors"),
        ("i don’t want to track command errors", "Please always track command errors."),
        ("i dont want to track command errors", "I want to track command errors, since support asks for it."),
        ("don't track command errors after all", "let's track command errors too"),
        ("drop the command errors", "We should keep the command errors."),
        ("Forget about the weekly report.", "I'd like to have a weekly report."),
        ("ok, no weekly report then", "I'd like to have a weekly report."),
        ("let's not squash commits", "Let's squash commits, as the others do."),
        ("Never squash commits.", "Always squash commits."),
        ("Actually, always squash commits.", "Never squash commits."),
        ("we need changelogs", "we don't need changelogs"),
        ("Ich will keine Wochenberichte.", "Ich möchte bitte immer Wochenberichte."),
        ("Bitte nie Wochenberichte schreiben.", "Bitte immer Wochenberichte schreiben."),
        ("Je ne veux pas de rapports.", "Je veux toujours des rapports."),
        ("No quiero informes semanales.", "Quiero siempre informes semanales."),
        ("不要追踪命令错误。", "以后必须追踪命令错误。"),
    ],
)
def test_what_is_taken_back(text: str, older: str) -> None:
    assert relation(text, older) == REPLACES


@each(
    ("text", "older"),
    [
        ("i want to track command errors", TRACK),  # says the same
        ("i don't want to track command errors", "Don't track command errors."),
        ("i don't want to track command errors", "I want to track errors."),  # less than what was said
        ("i don't want to track page views", TRACK),  # of something else
        ("i don't want to track errors in tests", TRACK),
        ("should we not track command errors?", TRACK),  # asks
        ("maybe don't track command errors", TRACK),  # doubts
        ("the commands don't track errors", TRACK),  # tells how it is
        ("no errors", "Track all errors."),  # news
        ("don't run the tests now", "Run the tests before each commit."),  # for now
        ("don't run the tests", "Always run the tests."),  # of the moment, beside what is to hold
        ("don't commit yet", "Always commit with a message."),
        ("if we don't track command errors, support is blind", TRACK),
        ("don't stop tracking command errors", TRACK),  # twice no
        ("Never log the token of a customer.", "Log the customer id and the token count."),
        ("Never log the token.", "Log the token count."),  # another thing that begins alike
        ("drop Redis", "Use Redis for sessions, Postgres for orders and S3 for the invoices of each region."),
        ("Ich will keine Berichte.", "Ich möchte Rechnungen und Berichte und Listen immer als Tabelle."),
        ("i don't want that", TRACK),  # says of nothing
        ("不要追踪命令。", "以后必须追踪命令错误。"),
        ("i don't want reports", "Bitte immer Berichte schreiben."),  # other words
    ],
)
def test_what_stays(text: str, older: str) -> None:
    assert relation(text, older) != REPLACES


def test_quoted_names_tell_rules_apart() -> None:
    older = "I want you to start all method names with 'a_'."
    assert is_same("From now on, start all method names with 'a_'.", older)
    assert not is_same("From now on, start all method names with 'b_'.", older)
