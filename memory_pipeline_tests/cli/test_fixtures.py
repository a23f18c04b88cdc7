"""The real sessions beside the project through the whole chain, twice: in CI a part of them, at night all.

They are not part of the project, so these tests skip where they are not there. No test here is timed: the
benchmark is `benchmarks/chain.py`.
"""

import json
import re
import shutil
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.prepared import copied, made_once

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FIXTURES.is_dir(), reason="../shared/fixtures, the real sessions, are not there"),
]


@dataclass(frozen=True)
class Sessions:
    """Real sessions, and the least that must come of them."""

    name: str
    largest: int | None
    """Bytes that a file may have of which the largest of each harness and repository is taken; None takes all files."""
    files: int
    days: int
    observations: int
    lines: int
    """Lines that are shown for review."""
    months: int
    """Of those lines."""

    def write(self, folder: Path) -> None:
        """Copy them. Gemini's are snapshots, each with what the one before has, and stay together."""
        found = sorted(FIXTURES.glob("*/*"), key=lambda path: path.stat().st_size)
        if self.largest is not None:
            found = list({_group(path): path for path in found if path.stat().st_size <= self.largest}.values())
        for path in found:
            target = folder / path.relative_to(FIXTURES)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


def _group(path: Path) -> tuple[str, str]:
    """Of these only one file is in the part."""
    harness = path.parent.name
    return harness, path.name if harness == "gemini" else path.name.partition("__")[0]


PART = Sessions("part", largest=1_000_000, files=25, days=15, observations=100, lines=1, months=0)
ALL = Sessions("all", largest=None, files=70, days=40, observations=200, lines=1, months=0)


@pytest.fixture(scope="module", params=[PART, *nightly(ALL)], ids=lambda sessions: sessions.name)
def sessions(request: pytest.FixtureRequest) -> Sessions:
    found: Sessions = request.param
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, sessions: Sessions) -> Path:
    """The sessions, the home after a run over them, and the summary of that run."""

    def run(place: Path) -> None:
        sessions.write(place / "sessions")
        result = memory(place / "home", "run", "--all", "--sessions", str(place / "sessions"), "--json")
        assert result.returncode == 0, result.stderr
        (place / "summary.json").write_text(result.stdout, "utf-8")

    return made_once(tmp_path_factory, f"fixtures-{sessions.name}", run)


@pytest.fixture
def home(place: Path) -> Path:
    """To look at; what runs again takes a copy."""
    return place / "home"


def rows(home: Path, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memory_json(home, "sql", query)
    return found


def test_every_file_is_read(home: Path, sessions: Sessions) -> None:
    known = {r["path"]: r["reason"] for r in rows(home, "select path, reason from files")}
    assert len(known) == sessions.files
    assert {path: reason for path, reason in known.items() if reason} == {}


def test_every_read_file_has_messages_in_the_tables(home: Path) -> None:
    read = {r["path"] for r in rows(home, "select path from files where reason is null and messages > 0")}
    stored = {r["source_file"] for r in rows(home, "select distinct source_file from messages")}
    copies = read - stored
    # of the snapshots of one Gemini session the longest has all that the others have
    assert {Path(path).parent.name for path in copies} == {"gemini"}
    assert len(copies) == 4


def test_every_check_passed_on_every_day(place: Path, sessions: Sessions) -> None:
    summary = json.loads((place / "summary.json").read_text("utf-8"))
    days = len(summary["days"])
    assert days > sessions.days
    sundays = {day + timedelta(7 - day.isoweekday()) for day in map(date.fromisoformat, summary["days"])}
    months = {(sunday.year, sunday.month) for sunday in sundays}
    assert summary["checks"] == {"passed": 18 * days + 2 * (len(sundays) + len(months)), "failed": 0, "failing": {}}


def test_the_review_begins_with_the_best_of_all_days(home: Path, sessions: Sessions) -> None:
    """Not with those of the days that were run first. Without a model they are few, and may have room together."""
    shown = {r["proposal_id"]: r["day"] for r in rows(home, "select proposal_id, day from events where kind = 'shown'")}
    waiting = {r["proposal_id"]: r["worth"] for r in rows(home, "select proposal_id, worth from proposals")}
    assert len(shown) == min(20, len(waiting)) >= sessions.lines
    left = [worth for p, worth in waiting.items() if p not in shown]
    assert min(waiting[p] for p in shown) >= max(left, default=-9.0) - 0.3
    assert len({p[2:8] for p in shown}) > sessions.months


def test_every_observation_stands_word_for_word_in_its_message(home: Path, sessions: Sessions) -> None:
    """Not by the project's own check, but by a query: the quoted span, without marks, has the observation's words."""
    query = """
        WITH spans AS (SELECT observation_id, text, unnest(evidence) AS e FROM observations)
        SELECT s.observation_id, s.text, substr(m.text, s.e.start + 1, s.e.end - s.e.start) AS quote
        FROM spans s LEFT JOIN messages m ON m.message_id = s.e.message_id
    """
    found = rows(home, query)
    said: dict[str, str] = {}
    for row in found:  # an answer is kept with what it answers: two quotes, in order
        said[row["observation_id"]] = said.get(row["observation_id"], "") + _letters(
            _LIST_NUMBER.sub("\n", row["quote"] or "")
        )
    assert len(said) > sessions.observations
    for row in found:
        text = _letters(row["text"])
        assert text
        assert text in said[row["observation_id"]]


def test_again_changes_no_byte_of_any_table(place: Path, tmp_path: Path) -> None:
    own = copied(place / "home", tmp_path / "home")
    lake = own / ".memory-pipeline" / "lake"
    before = {p: p.read_bytes() for p in lake.rglob("*.parquet")}
    result = memory(own, "run", "--all", "--sessions", str(place / "sessions"))
    assert result.returncode == 0
    assert "all up to date" in result.stderr
    assert {p: p.read_bytes() for p in lake.rglob("*.parquet")} == before


_LIST_NUMBER = re.compile(r"(?:^|\n)[^\w\n>]*\d{1,3}[.)]\s")


def _letters(text: str) -> str:
    """Letters and digits only, without the targets of links: what the observer may leave out of a quote."""
    return "".join(c for c in re.sub(r"(?<=\])\([^)\s]*\)", "", text) if c.isalnum())
