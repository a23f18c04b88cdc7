"""An environment that is not as the work needs it, in words that no list has, and what only sounds like it."""

import time

from memory_pipeline.friction.errors import drifting, sets_up
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import failing


@each(
    ("error", "thing"),
    [
        ("fatal error: 'Python.h' file not found", "python.h"),
        ("dyld[812]: Library not loaded: /opt/icu4c/lib/libicuuc.73.dylib", "libicuuc.73.dylib"),
        ("node: error while loading shared libraries: libicui18n.so.72: cannot open", "libicui18n.so.72"),
        ("Error: spawn convert ENOENT", "convert"),
        ("ImportError: Missing optional dependency 'openpyxl'. Use pip or conda.", "openpyxl"),
        ("Please set the KILN_URL environment variable.", "kiln_url"),
        ("./fire.sh: line 4: REGION: unbound variable", "region"),
        ("KeyError: 'KILN_SECRET_KEY'", "kiln_secret_key"),
        ("panic: REDIS_URL must be set", "redis_url"),
        ("Error: connect ETIMEDOUT 10.0.4.2:5432", "10.0.4.2:5432"),
        ("Error: getaddrinfo ENOTFOUND db", "db"),
        ("Bind for 0.0.0.0:5432 failed: port is already allocated", "5432"),
        ("zsh:1: no such file or directory: @kiln/ovens", "ovens"),
        ("zsh:2: command not found: kiln:", "kiln"),
        ("Vite requires Node.js version 20.19+ or 22.12+.", "node.js"),
        ("The current Dart SDK version is 2.19.6. Because kiln requires SDK version >=3.2.0 <4.0.0", "dart"),
        ("Your Ruby version is 2.7.8, but your Gemfile specified 3.2.2", "ruby"),
        ("Unable to locate a Java Runtime.", ""),
        ("error: the tools version of this package is 5.9.0, newer than the installed 5.7.1", ""),
        ("gpg: signing failed: No secret key", ""),
        ("An error occurred (ExpiredToken) when calling GetObject: The provided token has expired.", ""),
        ("x509: certificate signed by unknown authority", ""),
        ("EMFILE: too many open files, watch", ""),
        ("exec /usr/local/bin/kiln: exec format error", ""),
        ("AssertionError: Torch not compiled with CUDA enabled", ""),
        ("mise ERROR Config files in /srv/kiln/mise.toml are not trusted.", ""),
        ("fatal: detected dubious ownership in repository at '/srv/kiln'", ""),
    ],
)
def test_something_of_the_machine_is_absent_refused_or_of_another_version(error: str, thing: str) -> None:
    assert drifting(error) == ("thing" if thing else "state", thing)


@each(
    "error",
    [
        "AssertionError: expected 3 to equal 4",
        "expected 401 Unauthorized to equal 200 OK",
        "OptimisticLockError: expected version 3 but got 2",
        "psycopg2.errors.UndefinedTable: relation \"ovens\" does not exist",
        "src/a.ts(3,21): error TS2307: Cannot find module './ovens' or its corresponding type declarations.",
        "ImportError: cannot import name 'heat' from 'kiln.ovens' (/srv/kiln/ovens.py)",
        "KeyError: 'total'",
        "cmd/reset_test.go:105:8: undefined: paths.ClearCache",
        "gh: Not Found (HTTP 404)",
        "src/main.tsx(4,8): error TS2882: Cannot find module or type declarations for './styles.css'.",
        "SyntaxError: Unexpected token '}'",
        "error[E0412]: cannot find type `Oven` in this scope",
        "jinja2.exceptions.UndefinedError: 'oven' is undefined",
        "Error: oven 4711 not found",
        "license header is missing in src/oven.go",
        "Error: Rate limit exceeded, retry after 30 s",
        "upstream request timeout",
        "make: *** No rule to make target 'docs'.  Stop.",
        "error: The branch 'old' is not fully merged.",
        "Type error: Property 'heat' is missing in type '{ glaze: string; }' but required in type 'Oven'.",
    ],
)  # fmt: skip
def test_a_mistake_in_the_code_or_a_test_is_none(error: str) -> None:
    assert drifting(error) is None


@each("text", ["no " * 10_000, "_A" * 20_000, "a:1" * 20_000, "\x00" * 9_999, "", "‮" * 5_000])
def test_a_huge_or_strange_line_takes_no_time(text: str) -> None:
    started = time.process_time()
    drifting(text)
    assert time.process_time() - started < 2


@each(
    ("command", "does"),
    [
        ("brew install ffmpeg", True),
        ("cd kiln && nvm use 22", True),
        ("source .venv/bin/activate", True),
        ("sudo systemctl start postgresql", True),
        ("docker compose up -d db", True),
        ("gcloud auth login", True),
        ("direnv allow", True),
        ("chmod +x gradlew", True),
        ("git pull --rebase", False),
        ("make generate", False),
        ("npm install", False),  # what the code asks for
        ("export NODE_OPTIONS=--max-old-space-size=4096", False),
        ("pytest -n 1", False),
        ("", False),
        (None, False),
    ],
)
def test_what_changes_the_machine_and_no_code(command: str | None, does: bool) -> None:
    assert sets_up(command) is does


def cured(by: str) -> tuple[str, ...]:
    return (
        "user: Fire it.",
        "call: Bash(command=kiln fire)",
        "fails: the oven rejects the glaze",
        f"call: Bash(command={by})",
        "result: ok",
        "call: Bash(command=kiln fire)",
        "result: fired",
    )


def test_what_a_change_of_the_machine_cures_each_time_is_drift() -> None:
    (pattern,) = failing(cured("brew services start ovend"), cured("brew services start ovend"))
    assert pattern.kind == "configuration_drift"
    assert "`brew services start ovend` helped" in (pattern.adds or "")
    (other,) = failing(cured("kiln mix"), cured("kiln mix"))
    assert other.kind == "recurring_failure"


def test_two_states_without_a_name_are_one_only_if_they_are_told_alike() -> None:
    def run(error: str) -> tuple[str, ...]:
        return ("user: Go.", "call: Bash(command=kiln fire)", f"fails: {error}")

    cpu, ownership = "zsh: bad CPU type in executable: kiln", "fatal: detected dubious ownership in repository"
    assert failing(run(cpu), run(ownership)) == []
    (pattern,) = failing(run(cpu), run(cpu))
    assert pattern.title.startswith("`kiln` fails because of its environment: “")
    assert pattern.kind == "configuration_drift"
