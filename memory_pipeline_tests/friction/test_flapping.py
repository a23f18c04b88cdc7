"""A check of the environment that answers now one thing, now another."""

from memory_pipeline.friction.flapping import answers_in, patterns_of
from memory_pipeline.friction.patterns import Pattern
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import turns
from memory_pipeline_tests.rows import day_after


def found(*sessions: tuple[str, ...], cwd: str | None = "/src/kiln") -> list[Pattern]:
    answers = []
    for i, lines in enumerate(sessions):
        answers += answers_in(turns(*lines, session=f"s{i}", day=day_after(i - len(sessions) + 1)), cwd, "kiln")
    return patterns_of(answers)


def check(command: str, *answers: str, **_: str) -> tuple[str, ...]:
    lines = ["user: Look."]
    for answer in answers:
        lines += [f"call: Bash(command={command})", f"result: {answer}"]
    return tuple(lines)


@each("command", ["node --version", "git remote -v", "which kiln", "git config user.email"])
def test_an_answer_that_comes_back_after_another_is_drift(command: str) -> None:
    (pattern,) = found(check(command, "a"), check(command, "b"), check(command, "a"))
    assert (pattern.kind, pattern.sessions, len(pattern.members)) == ("configuration_drift", 3, 3)
    assert pattern.title == f"`{command}` says now one thing, now another: “b” and “a”"
    assert f"`{command}` keeps changing in project: kiln" in (pattern.adds or "")


@each(
    "sessions",
    [
        (check("node --version", "v18"), check("node --version", "v22")),  # raised once
        (check("node --version", "v18"), check("node --version", "v20"), check("node --version", "v22")),
        (check("node --version", "v18"),) * 5,
        (check("node --version", "v18", "v22", "v18"),),  # in one session
        (check("git status", "a"), check("git status", "b"), check("git status", "a")),  # changes with the work
        (check("date", "a"), check("date", "b"), check("date", "a")),
        (check("which kiln", "a" * 400), check("which kiln", "b"), check("which kiln", "a" * 400)),
        (("user: Look.", "call: Bash(command=node --version)"),) * 3,
    ],
)
def test_what_goes_on_or_changes_by_itself_is_none(sessions: tuple[tuple[str, ...], ...]) -> None:
    assert found(*sessions) == []


def test_another_folder_is_another_check() -> None:
    here, there = "cd /src/kiln && git remote -v", "cd /src/oven && git remote -v"
    assert found(check(here, "a"), check(there, "b"), check(here, "a")) == []
    assert len(found(check(here, "a"), check(here, "b"), check(here, "a"))) == 1
    moved = ("user: Go.", "call: Bash(command=cd /src/oven && make)", "result: ok", *check("git remote -v", "b")[1:])
    assert found(check("git remote -v", "a"), moved, check("git remote -v", "a")) == []
    named = ("user: Go.", "call: exec(cmd=git remote -v, workdir=/src/oven)", "result: b")
    assert found(check("git remote -v", "a"), named, check("git remote -v", "a")) == []


def test_a_wrapper_is_no_answer() -> None:
    def codex(number: int, answer: str) -> tuple[str, ...]:
        wrapped = f"Chunk ID: {number}\nWall time: 0.{number} seconds\nProcess exited with code 0\nOutput:\n{answer}"
        return ("user: Look.", "call: exec(cmd=node --version)", f"result: {wrapped}")

    assert found(codex(1, "v18"), codex(2, "v18"), codex(3, "v18")) == []
    assert len(found(codex(1, "v18"), codex(2, "v22"), codex(3, "v18"))) == 1
