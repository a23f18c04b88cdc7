"""What people say in other languages than English goes all the way: observed, offered, and found as friction."""

from __future__ import annotations

from datetime import date, timedelta

from memory_pipeline_tests.conftest import Entry, assistant, user, utc
from memory_pipeline_tests.sessions.machine import Machine

MONDAY = date(2025, 3, 3)
CHINESE = (
    "数据库一律使用Postgres，不要用SQLite",
    "Postgres里的价格一律用整数存储，不要用浮点数",
    "每次提交都要小，一个提交只做一件事",
    "Postgres的备份必须在凌晨两点到四点之间运行",
    "以后所有接口都要写测试，没有测试不能合并",
)
LOOK = "Schau dir bitte das Projekt an und gib mir einen Überblick über die Module"
RULE = "Ab jetzt immer Postgres verwenden, niemals SQLite"
NOTE = "Die Sicherungen immer nur nachts laufen lassen, nie am Tag."


def talk(day: date, *said: str, answer: str) -> list[Entry]:
    start = utc(f"{day}T09:00")
    turns = []
    for number, text in enumerate(said):
        turns.append(user(start + timedelta(minutes=2 * number), text))
        turns.append(assistant(start + timedelta(minutes=2 * number + 1), f"{answer} ({number + 1})"))
    return turns


def test_five_chinese_rules_are_five_proposals(machine: Machine) -> None:
    machine.write(
        "zh.jsonl", *talk(MONDAY, *CHINESE, answer="好的，我已经看过了相关的文件，接下来会按照这个要求来处理。" * 3)
    )
    machine.run()
    offered = {row["text"]: row for row in machine.rows("proposals")}
    assert set(CHINESE) <= set(offered)
    assert {(offered[text]["section"], offered[text]["support"]) for text in CHINESE} == {("Hard Rules", 1)}


def test_a_german_rule_is_offered_and_a_request_of_the_moment_is_not(machine: Machine) -> None:
    answer = "Ich habe mir die Dateien angesehen, die dafür in Frage kommen, und fasse sie gleich zusammen."
    small = ("Wie viele Module sind es denn insgesamt?", "Und wo liegen die Einstellungen?", "mach weiter")
    machine.write("de.jsonl", *talk(MONDAY, LOOK, RULE, *small, answer=answer))
    log = machine.settings.daily_log(MONDAY)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"# {MONDAY}\n\n{NOTE}\n", "utf-8")
    machine.run()
    (rule,) = [row for row in machine.rows("observations") if row["text"] == RULE]
    assert (rule["kind"], rule["priority"], rule["flags"]) == ("rule", "high", [])
    offered = {row["text"]: row["section"] for row in machine.rows("proposals")}
    assert offered[RULE] == offered[NOTE] == "Hard Rules"  # the note was written by hand
    assert not any("Überblick" in text for text in offered)


def test_a_german_correction_in_three_sessions_is_one_friction_pattern(machine: Machine) -> None:
    answer = "Ich habe die Pakete mit pip installiert und danach alle Tests des Dienstes noch einmal laufen lassen."
    for number, words in enumerate(("nicht pip, poetry", "Nein, nicht pip, sondern poetry", "Nimm poetry, nicht pip!")):
        said = (words, "Wie lange dauern die Tests?", "Welche sind langsam?", "Wo steht das?", "Und warum ist das so?")
        machine.write(f"s{number}.jsonl", *talk(MONDAY + timedelta(days=number), *said, answer=answer))
    machine.run()
    patterns = machine.rows("friction_clusters", MONDAY + timedelta(days=2))
    assert [(row["kind"], row["sessions"]) for row in patterns] == [("repeated_correction", 3)]
