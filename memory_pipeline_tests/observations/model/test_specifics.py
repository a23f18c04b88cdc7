"""Paths, names, versions and numbers: what of a text is one, and which of them nobody said."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.specifics import Words, missing_specifics, specifics
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import grows_evenly


@each(
    ("text", "expected"),
    [
        ("the lock is /var/run/worker.pid.", ["/var/run/worker.pid"]),
        ("moved src/a.py to src/b/a.py", ["src/a.py", "src/b/a.py"]),
        ("run `make test -j4` first", ["make test -j4"]),
        ("uses uv 0.9.1 and v2", ["0.9.1"]),
        ("bump v1.2 to v1.3", ["v1.2", "v1.3"]),
        ("set MAX_RETRIES and maxRetries with --no-cache", ["MAX_RETRIES", "maxRetries", "--no-cache"]),
        ("after 42 of 7 attempts", ["42"]),  # one digit is a count that a model may make itself
        ("see README.md, twice README.md", ["README.md"]),
        ("at 15:30 on 2025-03-05", []),  # looked after elsewhere
        ("e.g. and/or i.e. the U.S.", []),
        ("Never deploy on a Friday.", []),
        ("", []),
        ("用 `uv` 代替 pip 3.12", ["uv", "3.12"]),
    ],
)
def test_what_is_specific(text: str, expected: list[str]) -> None:
    assert specifics(text) == expected


SAID = Words(
    [
        "Never push to origin/main. The **timeout** is 3`0` seconds, since v2.1.",
        r"C:\Projects\bot\send_email.py and src/mail/__init__.py",
        "run: make test --jobs 4\nport 8080, build 1234",
        "I'm on uv 0.9",
    ]
)


@each(
    ("text", "missing"),
    [
        ("Nobody pushes to `origin/main`.", []),
        ("Nobody pushes to origin/master.", ["origin/master"]),
        ("ORIGIN/MAIN is protected", []),  # whatever the case
        ("It is in projects/bot/send_email.py", []),  # and whichever the slash
        ("It is in src/mail/__init__.py", []),
        ("It is in src/mail/init.py", []),  # as a quote without Markdown shows it
        ("The timeout is 30 seconds.", []),
        ("The timeout is 31 seconds.", ["31"]),
        ("The port is 80.", ["80"]),  # not a part of 8080
        ("The port is 8080.", []),
        ("The build is 234.", ["234"]),
        ("Since 2.1 and v2.1.", []),
        ("Since 2.2.", ["2.2"]),
        ("With uv v0.9.", []),  # the "v" may be the writer's
        ("Since v2.10.", ["v2.10"]),  # 2.1 with a digit more is another version
        ("Run `make test --jobs 4`.", []),
        ("Run `make --jobs`.", []),  # each of its words was said
        ("Run `make lint --jobs`.", ["make lint --jobs"]),
        ("`I’m on uv`", []),  # quotes of either kind
    ],
)
def test_what_nobody_said(text: str, missing: list[str]) -> None:
    assert missing_specifics(text, SAID) == missing


@given(st.lists(st.text(max_size=60), max_size=5), st.integers(0, 4))
def test_what_was_said_word_for_word_is_never_missing(texts: list[str], chosen: int) -> None:
    if texts:
        text = texts[chosen % len(texts)]
        assert missing_specifics(text, Words(texts)) == []


PARTS = st.sampled_from(
    ["src/a.py", "v1.2.3", "maxRetries", "`a b`", "**bold**", "__x__", "42", "0.5", "-", "ok", "\\"]
)


@given(st.lists(PARTS, max_size=12).map(" ".join))
def test_names_that_were_said_are_never_missing(text: str) -> None:
    assert missing_specifics(text, Words([text])) == []


@each("piece", ["a", "a.", "a_", "/", "`", "-", "@", "a`", "1.", "aB", "a/"])
def test_long_texts_take_no_time(piece: str) -> None:
    """A quote may be a line of a log, and a pattern must not go back over it again and again."""
    grows_evenly(lambda size: specifics(piece * size), 10_000)
