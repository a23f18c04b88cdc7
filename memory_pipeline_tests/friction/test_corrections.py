"""Patterns of what users said: said again, a rule that is broken still, a line that is over."""

from memory_pipeline.friction.corrections import Grouped, find_patterns
from memory_pipeline.friction.patterns import FrictionEvent, Pattern
from memory_pipeline.friction.rules import Rule
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.rows import day_after

OLD = day_after(-20)


def found(*said: FrictionEvent, rules: tuple[Rule, ...] = (), by_model: Grouped | None = None) -> list[Pattern]:
    return find_patterns(said, rules, by_model)


def test_what_was_said_in_three_sessions_is_a_line_for_memory() -> None:
    (pattern,) = found(
        event("No, use uv, not pip, for packages.", "s1", ago=2),
        event("Again: use uv, not pip, for packages.", "s2", ago=1),
        event("Use uv, not pip, for packages!", "s3"),
    )
    assert (pattern.kind, pattern.target_file, pattern.section) == ("repeated_correction", "MEMORY.md", "Hard Rules")
    assert pattern.title.startswith("Said again in 3 sessions: “Use uv, not pip, for packages")
    assert pattern.low_risk
    assert (pattern.adds or "").startswith("Use uv, not pip")  # without "no" and "again"


@each("times", [1, 2, 9])
def test_one_session_is_no_pattern_however_often_it_was_said(times: int) -> None:
    assert found(*(event("Use uv, not pip, for packages.", "s1", ago=i) for i in range(times))) == []


def test_words_that_only_announce_are_no_pattern() -> None:
    assert found(*(event("Again, this stood in the kiln's old thread:", s) for s in ("s1", "s2"))) == []


def test_what_a_model_grouped_is_never_applied_without_asking() -> None:
    said = [event("Use uv, not pip, for packages.", f"s{i}", ago=i) for i in range(3)]
    assert [p.low_risk for p in found(*said)] == [True]
    assert [p.low_risk for p in found(*said, by_model=Grouped([said], {}, {}))] == [False]
    assert found(*said, by_model=Grouped([], {}, {})) == []


def test_a_line_for_two_projects_names_them() -> None:
    text = "Use uv, not pip, for packages."
    (pattern,) = found(event(text, "s1", ago=1, project="kiln"), event(text, "s2", project="kiln"))
    assert "(project: kiln)" in (pattern.adds or "")


USE_PNPM, USE_NPM = "No, use pnpm for the frontend.", "Use npm instead of pnpm for the frontend."


def test_a_changed_mind_is_no_pattern() -> None:
    assert found(event(USE_PNPM, "s1", ago=2), event(USE_NPM, "s2")) == []


def test_who_says_the_new_twice_has_a_pattern_of_the_new_alone() -> None:
    (pattern,) = found(event(USE_PNPM, "s1", ago=3), event(USE_NPM, "s2", ago=2), event(USE_NPM, "s3"))
    assert {m.session_id for m in pattern.members} == {"s2", "s3"}
    assert USE_PNPM not in pattern.change


@each(
    ("rule", "texts"),
    [
        (
            "Install packages with uv, never with pip.",
            ("Install packages with uv, not pip!", "uv for packages, not pip."),
        ),
        (
            "Installiere Pakete immer mit uv.",
            ("Nein, installiere Pakete mit uv!",) * 2,
        ),
        ("Instala siempre los paquetes con uv.", ("No, instala los paquetes con uv!",) * 2),
    ],
)
def test_a_rule_that_is_broken_in_two_sessions_since_it_was_written(rule: str, texts: tuple[str, str]) -> None:
    events = [event(text, f"s{i}", ago=1 - i, cwd="/src/kiln") for i, text in enumerate(texts)]
    (pattern,) = found(*events, rules=(Rule("MEMORY.md", rule, OLD),))
    assert (pattern.kind, pattern.target_file, pattern.adds) == ("rule_violated", "AGENTS.md", rule)
    (pattern,) = found(*events, rules=(Rule("/src/kiln/AGENTS.md", rule, OLD),))
    assert (pattern.kind, pattern.adds) == ("rule_violated", None)  # a line is not enough: a barrier
    assert pattern.note
    later = found(*events, rules=(Rule("MEMORY.md", rule, day_after(1)),))
    assert "rule_violated" not in {p.kind for p in later}


def test_a_program_that_is_forbidden_and_used_is_denied_by_a_setting() -> None:
    rule = Rule("/src/kiln/CLAUDE.md", "Install packages with uv instead of pip.", OLD)
    events = [
        event("Again: install packages with uv instead of pip.", f"s{i}", ago=i, cwd="/src/kiln") for i in range(2)
    ]
    (pattern,) = found(*events, rules=(rule,))
    assert pattern.target_file == ".claude/settings.json"
    assert '"deny": ["Bash(pip:*)"]' in pattern.change


def test_a_rule_of_another_folder_is_not_the_one_that_is_broken() -> None:
    rule = Rule("/src/cli/AGENTS.md", "Install packages with uv, not pip.", OLD)
    events = [event("Install packages with uv, not pip.", f"s{i}", ago=i, cwd="/src/kiln") for i in range(2)]
    assert [p.kind for p in found(*events, rules=(rule,))] == ["repeated_correction"]


def test_a_rule_that_nobody_speaks_of_is_no_pattern() -> None:
    assert (
        found(event("The kiln log needs a header.", "s1"), rules=(Rule("MEMORY.md", "Install packages with uv.", OLD),))
        == []
    )


@each(
    ("line", "words"),
    [
        ("Use Jenkins for the builds.", "We use GitHub Actions instead of Jenkins for the builds."),
        ("Use pnpm for the frontend.", "We go with npm rather than pnpm."),
    ],
)
def test_a_line_whose_place_something_took_is_stale(line: str, words: str) -> None:
    rule = Rule("MEMORY.md", line, OLD)
    (pattern,) = found(event(words, "s1", ago=1), event(words, "s2"), rules=(rule,))
    assert (pattern.kind, pattern.target_file) == ("stale_memory", "MEMORY.md")
    assert (pattern.replaces, pattern.low_risk) == (line, True)
    assert line in pattern.title
    assert found(event(words, "s1", ago=25), rules=(rule,)) == []  # the line is newer


@each("text", ["x" * 400, "\x00" * 400, "‮⁦ " * 130, "不" * 400, "\x1b[31m" * 80])
def test_huge_and_strange_words_break_nothing(text: str) -> None:
    rule = Rule("MEMORY.md", text[:500], OLD)
    for pattern in found(event(text, "s1", ago=1), event(text, "s2"), rules=(rule,)):
        assert len(pattern.with_short_title().title) <= 160
