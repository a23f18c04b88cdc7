"""Files that arrive late, are touched, cut off, replaced, moved or gone: each change asks for exactly the days that it
changes, and afterwards the tables are those of a new workspace over the same files, with what is kept of those gone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pytest

from memory_pipeline_tests.conftest import conversation, user
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.sessions.machine import Machine, in_order

SUNDAY, MONDAY, TUESDAY, WEDNESDAY = (date(2025, 3, 2) + timedelta(days=number) for number in range(4))
NIGHT = conversation("2025-03-03T23:56", topic="parcels")  # two turns on Monday, three on Tuesday
MORNING = conversation("2025-03-04T09:00", topic="invoices")
LATER = [*MORNING, user("2025-03-05T09:00", "one more")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where each test has its machine in turn; tables name the paths of sessions."""
    folder = tmp_path_factory.mktemp("late")
    yield folder / "now"
    shutil.rmtree(folder)


@pytest.fixture
def machine(place: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> Machine:
    """One session over midnight and one on Tuesday, read and up to date; made once by each worker and copied."""
    done = place.with_name("done")
    shutil.rmtree(place, ignore_errors=True)
    if done.exists():
        return Machine(copied(done, place), monkeypatch, instance)
    place.mkdir()
    machine = Machine(place, monkeypatch, instance)
    machine.write("night.jsonl", *NIGHT)
    machine.write("morning.jsonl", *MORNING)
    machine.run()
    copied(place, done)
    return machine


class Case(NamedTuple):
    change: Callable[[Machine], object]
    due: list[date]
    kept: list[str] = []  # noqa: RUF012 - never changed
    """Sessions that no file has any more and that stay."""


def arrive_late(machine: Machine) -> None:
    os.utime(machine.write("late.jsonl", *conversation("2025-03-02T09:00", topic="old")), (0, 0))


def arrive_late_on_a_day_that_is_built(machine: Machine) -> None:
    os.utime(machine.write("a/late.jsonl", *conversation("2025-03-03T09:00", topic="old")), (0, 0))


def copy(machine: Machine) -> None:
    (machine.sessions / "backup").mkdir()
    shutil.copy2(machine.sessions / "night.jsonl", machine.sessions / "backup")


def copy_under_a_name_before(machine: Machine) -> None:
    shutil.copy2(machine.sessions / "night.jsonl", machine.sessions / "a.jsonl")


def copy_and_grow(machine: Machine) -> None:
    """The one that was copied goes on, the copy stays as it was."""
    copy_under_a_name_before(machine)
    machine.write("night.jsonl", *NIGHT, user("2025-03-05T09:00", "one more"))


def touch(machine: Machine) -> None:
    os.utime(machine.sessions / "night.jsonl")


def touch_into_the_future(machine: Machine) -> None:
    os.utime(machine.sessions / "night.jsonl", (4e9, 4e9))


def cut_off(machine: Machine) -> None:
    machine.write("night.jsonl", *NIGHT[:6])


def cut_off_a_whole_day(machine: Machine) -> None:
    machine.write("night.jsonl", *NIGHT[:4])


def cut_off_at_the_beginning(machine: Machine) -> None:
    """A day that no file has anything of any more must be emptied, too."""
    machine.write("night.jsonl", *NIGHT[4:])


def cut_off_in_a_line(machine: Machine) -> None:
    path = machine.sessions / "night.jsonl"
    path.write_bytes(path.read_bytes()[:-40])


def replace(machine: Machine) -> None:
    machine.write("night.jsonl", *conversation("2025-03-05T09:00", topic="another"), session_id="another")


def replace_by_one_of_the_same_size(machine: Machine) -> None:
    path = machine.sessions / "morning.jsonl"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes().replace(b"invoices, part 3", b"invoices, part 7"))
    assert path.stat().st_size == size
    os.utime(path, (1e9, 1e9))


def vanish(machine: Machine) -> None:
    (machine.sessions / "night.jsonl").unlink()


def vanish_beside_one_that_grows(machine: Machine) -> None:
    vanish(machine)
    machine.write("morning.jsonl", *MORNING, user("2025-03-04T11:00", "one more"))


def vanish_and_come_back(machine: Machine) -> None:
    content = (machine.sessions / "night.jsonl").read_bytes()
    vanish(machine)
    assert machine.due() == []
    (machine.sessions / "night.jsonl").write_bytes(content)


def move(machine: Machine) -> None:
    (machine.sessions / "archived_sessions").mkdir()
    (machine.sessions / "night.jsonl").rename(machine.sessions / "archived_sessions/night.jsonl")


def move_and_grow(machine: Machine) -> None:
    vanish(machine)
    machine.write("archived/night.jsonl", *NIGHT, user("2025-03-05T09:00", "one more"))


def rename(machine: Machine) -> None:
    """The header still names the session."""
    (machine.sessions / "night.jsonl").rename(machine.sessions / "0.jsonl")


def come_from_the_future(machine: Machine) -> None:
    machine.write("future.jsonl", user("2091-01-01T09:00", "from a clock that ran ahead"))


def come_partly_from_the_future(machine: Machine) -> None:
    machine.write("future.jsonl", *conversation("2025-03-05T09:00"), user("2091-01-01T09:00", "a clock that ran ahead"))


def grow(machine: Machine) -> None:
    machine.write("morning.jsonl", *LATER)


def grow_with_an_old_time(machine: Machine) -> None:
    grow(machine)
    os.utime(machine.sessions / "morning.jsonl", (0, 0))


def grow_by_half_a_line(machine: Machine) -> None:
    with (machine.sessions / "morning.jsonl").open("a") as file:
        file.write('{"type":"message","id":"half","timestamp":"2025-03-05T09:00:00Z","message":{"role":"us')


def grow_by_half_a_line_and_the_other_half(machine: Machine) -> None:
    grow_by_half_a_line(machine)
    assert machine.due() == []
    with (machine.sessions / "morning.jsonl").open("a") as file:
        file.write('er","content":"one more"}}\n')


def grow_by_a_line_without_its_end(machine: Machine) -> None:
    grow(machine)
    path = machine.sessions / "morning.jsonl"
    path.write_bytes(path.read_bytes().rstrip())


def become_empty(machine: Machine) -> None:
    (machine.sessions / "night.jsonl").write_bytes(b"")


def become_a_directory(machine: Machine) -> None:
    vanish(machine)
    machine.write("night.jsonl/inside.jsonl", *conversation("2025-03-05T09:00", topic="inside"))


def become_a_link(machine: Machine) -> None:
    elsewhere = machine.root / "elsewhere.jsonl"
    (machine.sessions / "night.jsonl").rename(elsewhere)
    (machine.sessions / "night.jsonl").symlink_to(elsewhere)


CASES = [
    Case(arrive_late, [SUNDAY]),
    Case(arrive_late_on_a_day_that_is_built, [MONDAY]),
    Case(copy, [MONDAY, TUESDAY]),
    Case(copy_under_a_name_before, [MONDAY, TUESDAY]),
    Case(copy_and_grow, [MONDAY, TUESDAY, WEDNESDAY]),
    Case(touch, []),
    Case(touch_into_the_future, []),
    Case(cut_off, [MONDAY, TUESDAY]),  # of what is left nobody said five things: that counts for its other day, too
    Case(cut_off_a_whole_day, [MONDAY, TUESDAY]),
    Case(cut_off_at_the_beginning, [MONDAY, TUESDAY]),
    Case(cut_off_in_a_line, [TUESDAY]),
    Case(replace, [MONDAY, TUESDAY, WEDNESDAY]),
    Case(replace_by_one_of_the_same_size, [TUESDAY]),
    Case(vanish, [], ["night"]),
    Case(vanish_beside_one_that_grows, [TUESDAY], ["night"]),
    Case(vanish_and_come_back, []),
    Case(move, [MONDAY, TUESDAY]),
    Case(move_and_grow, [MONDAY, TUESDAY, WEDNESDAY]),
    Case(rename, [MONDAY, TUESDAY]),
    Case(come_from_the_future, []),
    Case(come_partly_from_the_future, [WEDNESDAY]),
    Case(grow, [WEDNESDAY]),
    Case(grow_with_an_old_time, [WEDNESDAY]),
    Case(grow_by_half_a_line, []),
    Case(grow_by_half_a_line_and_the_other_half, [WEDNESDAY]),
    Case(grow_by_a_line_without_its_end, [WEDNESDAY]),
    Case(become_empty, [], ["night"]),
    Case(become_a_directory, [WEDNESDAY], ["night"]),
    Case(become_a_link, []),
]


@pytest.mark.parametrize("case", CASES, ids=[case.change.__name__ for case in CASES])
def test_what_changes_asks_for_its_days_and_no_others(case: Case, machine: Machine) -> None:
    before = machine.tables()
    case.change(machine)
    assert machine.due() == case.due
    machine.run()
    anew = machine.made_anew()
    kept = {name: [row for row in rows if row["session_id"] in case.kept] for name, rows in before.items()}
    assert machine.tables() == {name: in_order(anew[name] + kept[name]) for name in anew}


@pytest.mark.nightly
def test_one_change_after_another(machine: Machine) -> None:
    """All of them that leave the files there, in one workspace and one process."""
    for change in (
        grow,
        touch,
        copy,
        cut_off,
        grow_by_half_a_line,
        replace_by_one_of_the_same_size,
        replace,
        move,
        cut_off,
    ):
        change(machine)
        machine.run()
        assert machine.tables() == machine.made_anew(), change.__name__


def test_a_change_in_the_middle_of_a_long_file_is_seen_by_the_process_that_has_read_it(machine: Machine) -> None:
    """Somebody takes a password out. What goes on at the end is read without what lies before it."""
    path = machine.write("long.jsonl", *conversation("2025-03-05T09:00", users=50, topic="the password tr0ub4dor"))
    assert machine.due() == [WEDNESDAY]
    path.write_bytes(path.read_bytes().replace(b"tr0ub4dor, part 25", b"*********, part 25"))
    machine.run()
    assert len([text for text in machine.texts(WEDNESDAY) if "*********, part 25" in text]) == 2
    assert machine.tables() == machine.made_anew()


def test_a_file_of_the_same_size_and_time_is_taken_for_unchanged(machine: Machine) -> None:
    """As rsync and make do; the next change of either brings it in."""
    path = machine.sessions / "morning.jsonl"
    time = path.stat().st_mtime_ns
    replace_by_one_of_the_same_size(machine)
    os.utime(path, ns=(time, time))
    assert machine.due() == []
    os.utime(path)
    assert machine.due() == [TUESDAY]


def test_a_folder_that_cannot_be_listed_any_more_keeps_its_sessions(
    open_tmp: Path,
    monkeypatch: pytest.MonkeyPatch,
    instance: dg.DagsterInstance,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request.getfixturevalue("as_nobody")
    machine = Machine(open_tmp, monkeypatch, instance)
    machine.write("closed/night.jsonl", *NIGHT)
    machine.write("morning.jsonl", *MORNING)
    machine.run()
    before = machine.tables()
    folder = machine.sessions / "closed"
    folder.chmod(0o000)
    assert machine.due() == []
    assert machine.status(capsys)["files_not_read"] == {
        str(folder): "The folder cannot be listed: permission denied. Allow reading it, then run again."
    }
    machine.write("other.jsonl", *conversation("2025-03-04T15:00", topic="other"))
    machine.run()
    after = machine.tables()
    for name, rows in before.items():
        assert [row for row in after[name] if row["session_id"] != "other"] == rows
    folder.chmod(0o700)
    machine.run()
    assert machine.tables() == machine.made_anew()
    assert machine.status(capsys)["files_not_read"] == {}
