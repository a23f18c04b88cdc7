"""The files of languages, and the patterns that their phrases become."""

import pytest

from memory_pipeline.text import phrases
from memory_pipeline.text.phrases import LANGUAGES, load, word_list
from memory_pipeline_tests.cases import each


@pytest.fixture
def cues(monkeypatch: pytest.MonkeyPatch):
    """Reads the text of a file as the cues of a language."""

    def read(text: str) -> phrases.Cues:
        monkeypatch.setattr(phrases, "_read", lambda name: phrases.tomllib.loads(text))
        return load.__wrapped__("made up")

    return read


@each(
    ("rule", "found", "missed"),
    [
        ('words = ["always"]', "tests Always run", "alwaysrun it"),
        ('words = ["always"]\nexcept = ["always late"]', "always early", "always late"),
        ('words = ["don\'t"]', "we don’t push", "we dont push"),
        ('words = ["one _ per _"]', "one file per class", "one per class"),
        ('words = ["use … (instead/not)"]', "use the blue one, not the red", "use it; it is not red"),
        ('words = ["use … (instead/not)"]', "use it not", "use it"),
        ('words = ["remov*"]', "removed it", "it moved"),
        ('words = ["no[t]", ", y no _"]', "eso, y no esto", "nothing"),
        ('begins = ["no"]', "- No, stop", "oh no"),
        ('opens = ["run"]', "ok, now run it", "they run it"),
        ('clause = ["avoid"]', "it works, please avoid it", "we avoid it"),
        ('closes = ["immer *n"]', "Zeiten immer speichern, bitte", "immer speichern wir das"),
        ('ends = ["こと"]', "使うこと。", "ことだ"),
        ('short = ["great"]', "great, done.", "great, and now we go on with the next thing of the list"),
        ('only = ["ok", "go on"]', "ok, go on!", "ok, go there"),
    ],
)
def test_where_phrases_must_stand(cues, rule: str, found: str, missed: str) -> None:
    pattern = cues(f'fillers = ["ok", "now", "please"]\n[rule]\n{rule}').rule
    assert pattern.search(found)
    assert not pattern.search(missed)


def test_without_spaces_a_phrase_may_stand_within_a_word(cues) -> None:
    assert cues('spaced = false\n[rule]\nwords = ["必ず"]').rule.search("テストは必ず実行")


def test_what_is_given_up(cues) -> None:
    """It reaches to what follows it in the phrase, else to the end."""
    found = cues('[gives_up]\nwords = ["replac* X by", "instead of X"]').gives_up
    said = "replaced the old cache by uv instead of pip"
    assert [match["old"] for pattern in found if (match := pattern.search(said))] == ["the old cache", "pip"]


def test_a_role_without_words_may_use_those_of_another(cues) -> None:
    assert cues('[doubt]\nwords = ["vielleicht"]').guess.search("Vielleicht so")
    assert not cues("[doubt]\nwords = []").open.search("")


@each("text", ["[rules]\nwords = []", '[rule]\nanywhere = ["x"]'])
def test_what_is_misspelt_is_refused(cues, text: str) -> None:
    with pytest.raises(ValueError, match="no such"):
        cues(text)


@each("language", LANGUAGES)
def test_each_file_has_the_roles_that_tell_kinds(language: str) -> None:
    roles = ("rule", "decided", "correction", "asking", "momentary", "accepting", "acceptance", "refuses", "gives_up")
    assert not [role for role in roles if getattr(load(language), role) in (phrases.NEVER, ())]


def test_lists_of_words_are_joined_over_languages() -> None:
    assert {"the", "der", "les", "los"} <= word_list("grammar")
    assert "der" not in word_list("grammar", "english")
