"""What goes wrong with tools again and again: failures, misuse, and an environment that is not as it should be."""

from memory_pipeline.friction.errors import drifting
from memory_pipeline.friction.patterns import Pattern
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import failing, failures_of


def run(command: str, error: str, *after: str, tool: str = "Bash", key: str = "command") -> tuple[str, ...]:
    """A session in which a command fails."""
    return ("user: Make it work.", f"call: {tool}({key}={command})", f"fails: {error}", *after)


def only(patterns: list[Pattern]) -> Pattern:
    (pattern,) = patterns
    return pattern


@each(
    ("error", "thing"),
    [
        ("bash: line 1: rg: command not found", "rg"),
        ("zsh:1: command not found: rg", "rg"),
        ("'rg' is not recognized as an internal or external command", "rg"),
        ("ModuleNotFoundError: No module named 'yaml'", "yaml"),
        ("Error: Cannot find module 'left-pad'", "left-pad"),
        ("Error: listen EADDRINUSE: address already in use :::3000", "3000"),
        ("KeyError: environment variable KILN_TOKEN is not set", "kiln_token"),
        ("ls: cannot access 'docs/fire.md': No such file or directory", "fire.md"),
        ("bash: permission denied: /srv/x", ""),
        ("No space left on device", ""),
        ("cannot connect to the Docker daemon at unix:///var/run/docker.sock", "docker"),
    ],
)
def test_an_environment_that_is_not_as_the_work_needs_it_is_drift(error: str, thing: str) -> None:
    found = drifting(error)
    assert found is not None
    assert found[1] == thing
    assert only(failing(run("make", error), run("make", error))).kind == "configuration_drift"


@each("error", ["AssertionError: 3 != 4", "error: unknown option --fast", "TypeError: x is no list"])
def test_a_mistake_is_no_drift(error: str) -> None:
    assert drifting(error) is None


def test_a_program_is_missing_whatever_calls_it_and_whichever_shell_says_so() -> None:
    pattern = only(
        failing(
            run("rg -n kiln src", "bash: line 1: rg: command not found"),
            run("cd src && rg oven", "zsh:1: command not found: rg", tool="exec_command", key="cmd"),
            projects=("kiln", "cli"),  # a machine lacks it everywhere
        )
    )
    assert (pattern.sessions, pattern.target_file) == (2, "AGENTS.md")
    assert "`rg` is missing or differs from what `rg` needs: “" in (pattern.adds or "")


def test_a_file_is_missing_in_one_project() -> None:
    missing = run("python tools/fire.py", "python: can't open file 'tools/fire.py': No such file or directory")
    assert failing(missing, missing, projects=("kiln", "cli")) == []
    assert len(failing(missing, missing, projects=("kiln", "kiln"))) == 1


def test_a_shell_error_that_a_pipe_hid_counts() -> None:
    hidden = ("user: Search.", "call: Bash(command=rg x | head)", "result: bash: rg: command not found")
    assert only(failing(hidden, hidden)).kind == "configuration_drift"


def test_a_linters_rule_is_the_same_whether_a_pipe_hid_its_end() -> None:
    hidden = (
        "user: Check.",
        "call: Bash(command=mise run lint | tail)",
        "result: oven.go:3:2: x (errcheck)\n1 issues:",
    )
    told = run("mise run lint", "glaze.go:7:2: y (errcheck)")
    assert only(failing(hidden, told)).kind == "recurring_failure"


def test_a_failure_that_the_same_command_cured_each_time_says_what_to_run_first() -> None:
    cured = ("call: Bash(command=make migrate)", "result: done", "call: Bash(command=make test)", "result: 9 passed")
    made = run("make test", "OperationalError: table ovens is behind its migrations", *cured)
    pattern = only(failing(made, made))
    assert pattern.kind == "recurring_failure"
    assert pattern.adds == (
        "`make test` fails with “OperationalError: table ovens is behind its migrations”: run `make migrate` first."
    )


def test_what_worked_once_it_was_mended_was_replaced_by_nothing() -> None:
    mended = (
        "call: Bash(command=mixer src/glaze.txt)",
        "result: mixed",
        "call: Bash(command=kiln fire src/glaze.txt)",
        "result: fired",
    )
    failed = run("kiln fire src/glaze.txt", "the glaze of src/glaze.txt failed", *mended)
    pattern = only(failing(failed, failed))
    assert pattern.kind == "recurring_failure"
    assert "run `mixer src/glaze.txt` first" in (pattern.adds or "")


def test_the_same_with_another_number_is_the_same_that_was_mended() -> None:
    def failed(number: int) -> tuple[str, ...]:
        mended = ("call: Bash(command=python -m kiln.sort build/glaze.zip)", "result: sorted")
        again = (f"call: Bash(command=python -m kiln.check build/glaze-{number + 1}.zip)", "result: 0 errors")
        return run(f"python -m kiln.check build/glaze-{number}.zip", "ERROR the glazes are not sorted", *mended, *again)

    pattern = only(failing(failed(1), failed(7)))
    assert pattern.kind == "recurring_failure"
    assert "run `python -m kiln.sort build/glaze.zip` first" in (pattern.adds or "")


CONFLICT = "CONFLICT (content): Merge conflict in glazes.po"
MERGED = ("call: Bash(command=git merge)", "result: ok")


def test_a_conflict_that_a_script_solves_each_time_is_a_failure_with_its_cure() -> None:
    solved = ("call: Bash(command=python merge_po.py)", "result: merged", "call: Bash(command=git merge)", "result: ok")
    made = run("git merge", CONFLICT, *solved)
    pattern = only(failing(made, made))
    assert pattern.kind == "recurring_failure" and "run `python merge_po.py` first" in (pattern.adds or "")


def test_a_failure_without_a_cure_says_what_fails() -> None:
    made = run("make test", "OperationalError: table ovens is behind its migrations")
    pattern = only(failing(made, made))
    assert pattern.kind == "recurring_failure"
    assert "run `" not in pattern.change
    assert "table ovens is behind its migrations" in pattern.change


def test_what_is_called_instead_each_time_is_the_tool_to_use() -> None:
    made = run(
        "npm test kiln",
        "error: the lockfile belongs to another package manager",
        "call: Bash(command=pnpm test kiln)",
        "result: 9 passed",
    )
    pattern = only(failing(made, made))
    assert pattern.kind == "tool_misuse"
    assert pattern.adds is not None and pattern.adds.endswith("; use `pnpm test`.")


@each("error", ["error: unknown option '--fast'", "unrecognized arguments: --fast", "unknown flag: --x"])
def test_a_program_called_in_a_way_that_it_does_not_know_is_misuse(error: str) -> None:
    pattern = only(failing(run("kiln fire --fast", error), run("kiln fire --fast", error)))
    assert pattern.kind == "tool_misuse"
    assert "`kiln --help`" in (pattern.adds or "")


REFUSALS = {
    "en": "no, never push without asking me",
    "de": "nein, nie ohne meine Erlaubnis pushen",
    "es": "no, nunca hagas push sin preguntarme",
    "zh": "不要 在没有 问我 之前 推送",
}


@each("words", REFUSALS.values(), ids=REFUSALS)
def test_a_call_that_is_refused_in_three_sessions_is_misuse_with_the_users_words(words: str) -> None:
    refused = ("user: Finish it.", "call: Bash(command=git push)", "refused: rejected", f"user: {words}")
    pattern = only(failing(refused, refused, refused))
    assert pattern.kind == "tool_misuse"
    assert pattern.title == f"You refused `git push` in 3 sessions: “{words}”"
    assert words in (pattern.adds or "")
    assert [e[0] for e in pattern.members[0].evidence] == ["s0-2", "s0-3"]  # the call's result, and the answer
    assert pattern.members[0].evidence[1][1:] == (0, len(words))
    assert failing(refused, refused) == []  # twice, and nothing else was called


def test_two_refusals_are_enough_where_the_same_is_called_instead() -> None:
    refused = (
        "user: Finish it.",
        "call: Bash(command=git push)",
        "refused: rejected",
        "call: Bash(command=gh pr create)",
        "result: opened",
    )
    assert "use `gh pr`" in (only(failing(refused, refused)).adds or "")


def test_an_edit_is_refused_for_what_it_writes() -> None:
    refused = ("user: Finish it.", "call: Edit(file_path=a.py)", "refused: rejected", "user: no, leave that file alone")
    assert failing(refused, refused, refused) == []


def test_one_session_that_fails_again_and_again_is_no_pattern() -> None:
    assert failing(run("make", "permission denied") * 9) == []


@each(
    "lines",
    [
        run("make", ""),
        run("make", "Exit code 1"),
        run("make", "The user doesn't want to proceed with this tool use."),
        run("git merge main", "CONFLICT (content): Merge conflict in a.py"),  # comes with the work
        run("git merge", CONFLICT, *("call: Bash(command=git add .)", "result: ok"), *MERGED),
        ("call: Edit(file_path=a.py)", "fails: File has not been read yet. Read it first."),  # nobody can change it
        ("call: apply_patch(x)", "fails: apply_patch verification failed: Failed to find expected lines in a.py:"),
        ("call: write_stdin(session_id=7)", "fails: write_stdin failed: Unknown process id 7"),
        ("call: Bash(command=sleep 100)",),  # no result
        ("user: error: permission denied", "assistant: error: permission denied"),
        run("make", "\x00\x1b[31m‮⁦"),
    ],
)
def test_what_is_no_pattern_however_often(lines: tuple[str, ...]) -> None:
    assert failing(lines, lines, lines) == []


def test_other_errors_with_similar_words_are_others() -> None:
    errors = ("AssertionError: the oven is cold", "AssertionError: the glaze is wrong", "AssertionError: no clay left")
    assert failing(*(run("make test", error) for error in errors)) == []


def test_evidence_is_the_line_as_it_stands_and_the_cost_ends_with_the_success() -> None:
    output = "starting\n\x1b[31mValueError: no glaze for cone 9\x1b[0m\nbye"
    (failure,) = failures_of(
        (
            "user: Fire it.",
            "call: Bash(command=make fire)",
            f"fails: {output}",
            "call: Bash(command=make glaze)",
            "result: ok",
            "call: Bash(command=make fire)",
            "result: fired",
            "user: Thanks.",
        )
    )
    ((message_id, start, end),) = failure.event.evidence
    assert message_id == "s0-2"
    assert failure.event.text == failure.error == "ValueError: no glaze for cone 9"
    assert end - start == len(failure.error)
    assert (failure.event.turns, failure.event.minutes) == (5, 5.0)
    assert (failure.cure, failure.request) == ("make glaze", "s0-0")


def test_a_huge_output_is_evidence_of_its_own_line_only() -> None:
    made = run("make", "x" * 100_000 + "\nOperationalError: the kiln is locked\n" + "y" * 100_000)
    pattern = only(failing(made, made))
    (span,) = pattern.members[0].evidence
    assert span[1:] == (100_001, 100_001 + len("OperationalError: the kiln is locked"))
