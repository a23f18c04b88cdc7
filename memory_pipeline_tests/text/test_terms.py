"""What word search compares."""

from memory_pipeline.text.terms import MAX_TERM, query_terms, terms
from memory_pipeline_tests.cases import each


@each(
    ("text", "wanted"),
    [
        ("getUserById", {"getuserbyid", "get", "user", "id"}),
        ("src/auth/session.py", {"src/auth/session.py", "src", "auth", "session", "py"}),
        ("bump to v2.3.1", {"v2.3.1", "2.3.1", "bump"}),
        ("HttpServer is_error", {"httpserver", "http", "server", "is_error", "error"}),
        ("we decided, deciding, decides", {"decid"}),
        ("运行测试", {"运行", "行测", "测试"}),
        ("デプロイの前に", {"デプロイ", "前"}),
    ],
)
def test_names_are_found_whole_and_in_parts_and_prose_by_its_stem(text: str, wanted: set[str]) -> None:
    assert wanted <= set(terms(text))


def test_a_german_question_meets_a_german_text_in_another_form() -> None:
    said = terms("Die Prüfungen laufen vor jedem Commit, und niemand darf sie auslassen.")
    assert {"prufung"} <= set(said) & set(query_terms("Wann läuft die Prüfung?"))


def test_words_of_grammar_and_endless_ones_are_no_terms() -> None:
    assert terms("it is the and of") == []
    assert "x" * (MAX_TERM + 1) not in terms("x" * (MAX_TERM + 1))


def test_a_query_has_each_term_once() -> None:
    assert query_terms("redis redis Redis") == ["redi"]
