"""Patterns of what users said: said again, a rule that is broken still, a line that is over."""

from dataclasses import replace

import pytest

from memory_pipeline.friction import judging
from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.clustering import Words
from memory_pipeline.friction.corrections import patterns_of
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.judging import Judge, corrects
from memory_pipeline.friction.patterns import Pattern
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.messages import Said
from memory_pipeline.text.phrases import phrase_encoder
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.rows import day_after

OTHER = (
    "The kiln log needs a header.",
    "Sort the glazes by cone.",
    "Rename the oven module.",
    "Write shorter commits.",
)
OLD = day_after(-20)


def found(
    *corrections: FrictionEvent, changes: tuple[FrictionEvent, ...] = (), rules: tuple[Rule, ...] = ()
) -> list[Pattern]:
    said = Said(list(corrections), list(changes), [])
    return patterns(said, *rules)


def patterns(said: Said, *rules: Rule) -> list[Pattern]:
    events = [*said.corrections, *said.changes, *said.remarks]
    words = Words.among([*OTHER, *(e.text for e in events), *(rule.text for rule in rules)], [e.did for e in events])
    of_events = dict(zip((e.event_id for e in events), phrase_encoder().encode([e.text for e in events]), strict=True))
    of_rules = dict(zip((r.rule_id for r in rules), phrase_encoder().encode([r.text for r in rules]), strict=True))
    judge = Judge(said, of_events, words)
    return patterns_of(judge, AboutRules(rules, of_rules, judge.events, of_events, words), of_events)


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


@pytest.mark.parametrize("times", [1, 2, 9])
def test_one_session_is_no_pattern_however_often_it_was_said(times: int) -> None:
    assert found(*(event("Use uv, not pip, for packages.", "s1", ago=i) for i in range(times))) == []


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """How likely an objection each session's words are; what is not told is none."""
    logits = dict[str, float]()
    monkeypatch.setattr(judging, "_sure", lambda event, *_: logits.get(event.session_id, -5.0))
    return logits


@pytest.mark.parametrize(
    ("sure", "is_pattern"),
    [
        ((2.0, 2.0), True),
        ((0.5, 2.5), True),  # one of them is a weak sign
        ((0.5, 0.5), False),  # both are
        ((-1.5, -1.5, 1.0, 0.5), False),  # most of what is said of it is no objection
    ],
)
def test_what_is_about_one_thing_is_judged_together(
    weighed: dict[str, float], sure: tuple[float, ...], is_pattern: bool
) -> None:
    weighed |= {f"s{i}": logit for i, logit in enumerate(sure)}
    remarks = [event("The kiln shed wants packages from uv.", f"s{i}", ago=i) for i in range(len(sure))]
    assert bool(patterns(Said([], [], remarks))) is is_pattern


def test_less_is_enough_after_the_same_rare_deed(weighed: dict[str, float]) -> None:
    weighed |= {"s1": 0.5, "s2": 0.5}
    texts = ("the shed wants packages from uv", "uv packages is what the shed wants")
    events = [event(text, f"s{i}", ago=2 - i) for i, text in enumerate(texts, 1)]
    assert patterns(Said([], [], events)) == []
    (pattern,) = patterns(Said([], [], [replace(e, did=frozenset({"ran pip install"})) for e in events]))
    assert pattern.kind == "repeated_correction"


def test_the_same_work_on_other_things_is_no_objection_whatever_the_weights_say(weighed: dict[str, float]) -> None:
    weighed |= {f"s{i}": 2.0 for i in range(4)}
    things = ("importer", "mailer", "scheduler", "exporter")
    asked = [event(f"The kiln shed wants packages in the {x}.", f"s{i}", ago=i) for i, x in enumerate(things)]
    same = [event("The kiln shed wants packages in the importer.", f"s{i}", ago=i) for i in range(4)]
    assert patterns(Said([], [], asked)) == []
    assert len(patterns(Said([], [], same))) == 1


def test_what_is_asked_for_first_is_no_objection_unless_it_says_so() -> None:
    text = "that is not what i asked for, packages come from uv"
    asked = [event(text, f"s{i}", ago=i) for i in range(2)]
    first = [event("fetch the packages of the kiln shed", f"s{i}", ago=i) for i in range(2)]
    assert patterns(Said([], [], asked))
    assert patterns(Said([], [], [replace(e, opens=True, is_owned=True) for e in first])) == []


def test_a_cue_in_a_question_asks_and_corrects_nothing() -> None:
    assert corrects("the old name notifier is used again")
    assert not corrects("who still uses the old name notifier?")


def test_words_that_only_announce_are_no_pattern(weighed: dict[str, float]) -> None:
    weighed |= {"s1": 3.0, "s2": 3.0}
    assert found(*(event("This stood in the kiln's old thread:", s) for s in ("s1", "s2"))) == []


def test_minds_that_changed_in_two_sessions_are_no_objections() -> None:
    text = "We decided today to pack the logs with zstd after all."
    assert found(changes=(event(text, "s1", ago=1), event(text, "s2"))) == []


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (
            "Visible strings come from the locales folder, never as literals.",
            (
                "this string is a literal, it belongs into locales",
                "der Text gehört in den Ordner locales, nicht in den Code",
            ),
        ),
        (
            "Test files live beside the module they test.",
            ("los tests van junto al módulo", "tests go next to the module, not into that folder"),
        ),
    ],
)
def test_a_rule_is_told_from_all_that_is_said_of_it_together_in_any_language(rule: str, texts: tuple[str, str]) -> None:
    """Less has to be said than where there is no rule; and no single sentence has to say the line again."""
    events = [event(text, f"s{i}", ago=1 - i) for i, text in enumerate(texts)]
    (pattern,) = patterns(Said([], [], events), Rule("MEMORY.md", rule, OLD))
    assert (pattern.kind, pattern.adds) == ("rule_violated", rule)


def test_news_of_a_line_breaks_no_rule_but_ends_it() -> None:
    rule = Rule("MEMORY.md", "Delays reach the board through Kafka.", OLD)
    texts = ("the board listens to MQTT now, Kafka was switched off", "we have swapped Kafka for MQTT on the ships")
    events = [event(text, f"s{i}", ago=1 - i) for i, text in enumerate(texts)]
    assert [p.kind for p in found(changes=tuple(events), rules=(rule,))] == ["stale_memory"]


KILN = Rule("MEMORY.md", "The kiln controller talks to the shop over a serial cable.", OLD)
OVEN = Rule("MEMORY.md", "Firing curves are kept in the spreadsheet of the studio.", OLD)
OVER = [
    (
        KILN,
        "poll the kiln controller over the wifi bridge, the cable was thrown out in spring",
        "there is no serial port on the new kiln controller, it sends its readings over wifi since the upgrade",
    ),
    (
        OVEN,
        "read the firing curves from the database, since the move in may the spreadsheet is only an archive",
        "we gave up the studio's spreadsheet in march, all firing curves live in the database by now",
    ),
    (
        Rule("MEMORY.md", "Die Brennkurven liegen in der Tabelle des Studios.", OLD),
        "nimm die Brennkurven aus der Datenbank, die Tabelle haben wir seit dem Umzug nicht mehr",
        "Brennkurven stehen seit Mai alle in der Datenbank, die Tabelle ist gelöscht",
    ),
]


@pytest.mark.parametrize(("rule", "first", "then"), OVER)
def test_a_line_is_over_when_two_sessions_say_so_each_in_its_words(rule: Rule, first: str, then: str) -> None:
    said = Said([], [], [event(first, "s1", ago=1), event(then, "s2")])
    (pattern,) = patterns(said, rule)
    assert (pattern.kind, pattern.replaces, len(pattern.members)) == ("stale_memory", rule.text, 2)
    assert patterns(said._replace(remarks=[event(first, "s1", ago=1), event(then, "s1")]), rule) == []
    assert patterns(said._replace(remarks=[event(first, "s1", ago=30), event(then, "s2", ago=29)]), rule) == []


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (KILN, ("log what the kiln controller sends over the serial cable", "why is the serial cable so slow?")),
        (KILN, ("add a retry to the serial port of the kiln", "rename the kiln controller's module")),
        (OVEN, ("read the firing curve of cone 6 from the spreadsheet", "plot the firing curves of the spreadsheet")),
    ],
)
def test_a_line_that_is_only_talked_of_holds(rule: Rule, texts: tuple[str, str]) -> None:
    assert patterns(Said([], [], [event(text, f"s{i}", ago=1 - i) for i, text in enumerate(texts)]), rule) == []


def test_in_a_language_without_weights_a_cue_has_to_end_a_line() -> None:
    rule = Rule("MEMORY.md", "窯の制御装置はシリアルケーブルでつながっている。", OLD)
    cued = ("窯の制御装置はもうシリアルケーブルではなく無線です", "窯の制御装置のシリアルケーブルはもう使っていません")
    plain = ("窯の制御装置のシリアルケーブルを記録して", "窯の制御装置はシリアルケーブルで動いている")

    def kinds(texts: tuple[str, str]) -> list[str]:
        said = Said([], [], [event(text, f"s{i}", ago=1 - i) for i, text in enumerate(texts)])
        return [pattern.kind for pattern in patterns(said, rule)]

    assert kinds(cued) == ["stale_memory"]
    assert "stale_memory" not in kinds(plain)


def test_a_line_for_two_projects_names_them() -> None:
    text = "Use uv, not pip, for packages."
    (pattern,) = found(event(text, "s1", ago=1, project="kiln"), event(text, "s2", project="kiln"))
    assert "(project: kiln)" in (pattern.adds or "")


USE_PNPM, USE_NPM = "Use pnpm for the frontend.", "Use npm instead of pnpm for the frontend."


def test_a_changed_mind_is_no_pattern() -> None:
    assert found(event(USE_PNPM, "s1", ago=2), event(USE_NPM, "s2")) == []


def test_who_says_the_new_twice_has_a_pattern_of_the_new_alone() -> None:
    (pattern,) = found(event(USE_PNPM, "s1", ago=3), event(USE_NPM, "s2", ago=2), event(USE_NPM, "s3"))
    assert {m.session_id for m in pattern.members} == {"s2", "s3"}
    assert USE_PNPM not in pattern.change


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (
            "Install packages with uv, never with pip.",
            ("Install packages with uv, not pip!", "uv for packages, not pip."),
        ),
        ("Installiere Pakete immer mit uv.", ("Installiere Pakete doch mit uv!", "Wieder falsch: Pakete mit uv.")),
        ("Instala siempre los paquetes con uv.", ("Instala los paquetes con uv!", "Otra vez: los paquetes con uv.")),
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
    assert found(event(OTHER[0], "s1"), rules=(Rule("MEMORY.md", "Install packages with uv.", OLD),)) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Use Jenkins for the builds.", "We use GitHub Actions instead of Jenkins for the builds."),
        ("Use pnpm for the frontend.", "We go with npm rather than pnpm."),
    ],
)
def test_a_line_whose_place_something_took_is_stale(line: str, words: str) -> None:
    rule = Rule("MEMORY.md", line, OLD)
    (pattern,) = found(changes=(event(words, "s1", ago=1), event(words, "s2")), rules=(rule,))
    assert (pattern.kind, pattern.target_file) == ("stale_memory", "MEMORY.md")
    assert (pattern.replaces, pattern.low_risk) == (line, True)
    assert line in pattern.title
    assert found(changes=(event(words, "s1", ago=25),), rules=(rule,)) == []  # the line is newer


@pytest.mark.parametrize("text", ["x" * 400, "\x00" * 400, "‮⁦ " * 130, "不" * 400, "\x1b[31m" * 80])
def test_huge_and_strange_words_break_nothing(text: str) -> None:
    rule = Rule("MEMORY.md", text[:500], OLD)
    for pattern in found(event(text, "s1", ago=1), event(text, "s2"), rules=(rule,)):
        assert len(pattern.told().title) <= 160
