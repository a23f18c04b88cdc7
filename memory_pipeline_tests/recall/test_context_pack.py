from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.recall import context_pack as packs
from memory_pipeline.recall.context_pack import ASKED, CHANGED, FIRST, FULL, RankedLine, context_pack, ranked_lines
from memory_pipeline.settings import Settings
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.conftest import Entry, assistant, user, write_session
from memory_pipeline_tests.rows import (
    DAY,
    day_after,
    decision,
    observation,
    observation_id,
    proposal,
    put,
    reflection,
    workspace,
)

KILN = Path("/home/ada/kiln")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Settings, Lake]:
    monkeypatch.setattr(packs, "WORKING_TOKENS", 1000)
    monkeypatch.setattr(packs, "SESSION_TOKENS", 500)
    settings, lake = workspace(tmp_path / "ws")
    put(lake, "observations", *[observation(f"Always keep brick {n} dry.", project="kiln") for n in range(40)])
    settings.memory_file.write_text("## Hard Rules\n- Fire at noon.\n- Sails are white. (project: sloop)\n")
    return settings, lake


def talked(path: Path, turns: int) -> Path:
    """A session of about 60 tokens a turn."""
    entries: list[Entry] = []
    for n in range(turns):
        at = f"2025-03-06T{9 + n // 60:02}:{n % 60:02}"
        entries.append(
            user(f"{at}:00", f"Never put the {n}th parcel into the cellar, always keep it on shelf {n * 7}.")
        )
        entries.append(
            assistant(f"{at}:30", f"I moved parcel {n} to shelf {n * 7} and wrote it down in the ledger of it.")
        )
    return write_session(path, *entries)


def test_it_is_the_same_until_it_is_rebuilt(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    first = context_pack(settings, KILN)
    assert first.rebuilt == FIRST
    assert "- Fire at noon. [MEMORY.md:2]" in first.text
    assert "Sails" not in first.text
    put(lake, "observations", observation("Always keep brick 99 dry.", project="kiln"))
    again = context_pack(settings, KILN)
    assert (again.text, again.rebuilt) == (first.text, None)
    asked = context_pack(settings, KILN, rebuild=True)
    assert asked.rebuilt == ASKED
    assert "brick 99" in asked.text
    settings.memory_file.write_text("- Fire at dawn.\n")
    changed_file = context_pack(settings, KILN)
    assert changed_file.rebuilt == CHANGED
    assert "dawn" in changed_file.text


def test_a_line_has_the_day_on_which_it_was_said(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    old = observation("Glaze twice.", day=day_after(-9), project="kiln")
    put(lake, "observations", old)
    usage = settings.workspace / "usage"
    usage.mkdir()
    ids = [old["observation_id"]]
    use = {"at": "", "kind": "recall", "query": "", "project": None, "shown": ids, "cited": ids}
    (usage / f"{day_after(5)}.jsonl").write_text(json.dumps(use) + "\n")
    observed = context_pack(settings, KILN).text.partition("## Observed, best first\n")[2].splitlines()
    assert observed[0] == f"- 🔴 ({day_after(-9)}) Glaze twice. [{ids[0]}]"


def test_it_keeps_to_its_budget(opened: tuple[Settings, Lake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "pack_tokens", 500)
    pack = context_pack(opened[0], KILN)
    assert 400 < estimate(pack.text) <= 500
    assert "Fire at noon." in pack.text


def test_a_session_is_raw_until_it_is_twice_the_working_tier(
    opened: tuple[Settings, Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SESSION_TOKENS", 5_000)  # each message is a rule, and all are kept
    settings, _ = opened
    short = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 10))
    assert (short.rebuilt, short.within, short.is_due) == (FIRST, [], False)
    due = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 30))
    assert (due.text, due.is_due, due.rebuilt) == (short.text, True, None)
    assert 1000 < due.raw_tokens < 2000
    forced = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 60))
    assert forced.within and not forced.is_due
    assert forced.raw_tokens <= 1000
    assert forced.rebuilt is None


def test_catching_up_adds_at_the_end(
    opened: tuple[Settings, Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SESSION_TOKENS", 10_000)
    settings, _ = opened
    first = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 30), catch_up=True)
    assert first.within and first.raw_tokens <= 1000
    put(opened[1], "observations", observation("Always keep brick 99 dry.", project="kiln"))
    settings.memory_file.write_text("- Fire at dawn.\n")
    second = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 60), catch_up=True)
    assert second.rebuilt is None
    assert second.through > first.through
    assert len(second.within) > len(first.within)
    assert second.text.startswith(first.text.removesuffix("</memory>\n"))
    assert context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 60), catch_up=True) == second


def test_a_full_layer_of_the_session_lets_its_oldest_lines_go(opened: tuple[Settings, Lake], tmp_path: Path) -> None:
    settings, _ = opened
    context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 30), catch_up=True)
    full = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 400), catch_up=True)
    assert full.rebuilt == FULL
    assert estimate("\n".join(full.within)) <= 500


def test_beside_a_session_other_sessions_have_their_own_budget(
    opened: tuple[Settings, Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "CROSS_SESSION_TOKENS", 500)
    settings, _ = opened
    pack = context_pack(settings, KILN, talked(tmp_path / "s.jsonl", 3))
    assert estimate(pack.text) <= 500
    assert estimate(context_pack(settings, KILN).text) > 600


def test_a_damaged_pack_is_made_anew(opened: tuple[Settings, Lake]) -> None:
    settings, _ = opened
    first = context_pack(settings, KILN)
    path = next((settings.workspace / "packs").glob("*.json"))
    path.write_text('{"version": 1')
    assert context_pack(settings, KILN) == first


@pytest.fixture
def empty(tmp_path: Path) -> tuple[Settings, Lake]:
    return workspace(tmp_path / "empty")


def texts(settings: Settings, lake: Lake, **how: str | None) -> list[str]:
    project = how.pop("project", "kiln")
    return [row.text for row in ranked_lines(settings, lake, project, how.pop("without_session", None))]


def test_the_score_is_priority_times_kind_halved_by_the_half_life() -> None:
    row = RankedLine("o-1", "x", "high", DAY)
    week_before = RankedLine("o-2", "x", "high", day_after(-7))
    assert math.exp(row.score() - week_before.score()) == pytest.approx(2)
    assert math.exp(row.score() - RankedLine("o-3", "x", "medium", DAY).score()) == pytest.approx(1.5)
    assert math.exp(RankedLine("r-1", "x", "high", DAY, 1.3).score() - row.score()) == pytest.approx(1.3)


def test_priority_kind_and_age_decide(empty: tuple[Settings, Lake]) -> None:
    settings, lake = empty
    put(
        lake,
        "observations",
        observation("Medium today.", priority="medium", kind="decision"),
        observation("High today."),
        observation("High long ago.", day=day_after(-14)),
    )
    put(lake, "reflections", reflection("High and condensed.", sources=["o-x"], trust="user"))
    order = ["High and condensed.", "High today.", "Medium today.", "High long ago."]
    assert texts(settings, lake) == order


def test_what_was_cited_is_as_if_it_was_said_then(empty: tuple[Settings, Lake]) -> None:
    settings, lake = empty
    put(
        lake,
        "observations",
        observation("Old.", day=day_after(-30)),
        observation("New."),
        observation("Shown.", day=day_after(-30)),
    )
    assert texts(settings, lake)[0] == "New."
    usage = settings.workspace / "usage"
    usage.mkdir()
    old, shown = observation_id("Old.", day_after(-30)), observation_id("Shown.", day_after(-30))
    use = {"at": "", "kind": "recall", "query": "", "project": None, "shown": [shown, old], "cited": [old]}
    (usage / f"{day_after(5)}.jsonl").write_text(json.dumps(use) + "\n")
    assert texts(settings, lake) == ["Old.", "New.", "Shown."]


def test_what_was_replaced_stays_so_however_often_it_is_cited(empty: tuple[Settings, Lake]) -> None:
    settings, lake = empty
    gone, other = observation_id("With npm."), observation_id("With yarn.")
    old = reflection("With npm.", sources=[gone], trust="user")
    half = reflection("With npm or make.", sources=[gone, "o-make"], trust="user")
    new = reflection("With pnpm.", superseded=[gone], day=day_after(1), trust="user")
    put(lake, "reflections", old, half, new, reflection("Yarn it is.", sources=[other], trust="user"))
    put(lake, "proposals", proposal(1, "Use yarn.", sources=[other]))
    put(lake, "events", decision("p-20250305-001", "superseded"))
    usage = settings.workspace / "usage"
    usage.mkdir(parents=True)
    ids = [old["reflection_id"], half["reflection_id"]]
    use = {"at": "", "kind": "recall", "query": "", "project": None, "shown": ids, "cited": ids}
    (usage / f"{day_after(5)}.jsonl").write_text(json.dumps(use) + "\n")
    assert texts(settings, lake) == ["With npm or make.", "With pnpm."]


def test_what_does_not_belong_is_not_ranked(empty: tuple[Settings, Lake]) -> None:
    settings, lake = empty
    put(
        lake,
        "observations",
        observation("Of another project.", project="sloop"),
        observation("Of this session.", session="now"),
        observation("Pasted.", trust="paste"),
        observation("Doubted.", flags=["ungrounded"]),
        observation("Why?", kind="question"),
        observation("Rejected."),
        observation("Replaced."),
        observation("Stays.", project="kiln"),
    )
    put(lake, "proposals", proposal(1, "Rejected in other words.", sources=[observation_id("Rejected.")]))
    put(lake, "events", decision("p-20250305-001", "rejected"))
    newer = reflection("Newer.", superseded=[observation_id("Replaced.")], day=date(2025, 3, 6), trust="user")
    put(lake, "reflections", newer)
    assert texts(settings, lake, without_session="now") == ["Newer.", "Stays."]


def test_the_same_words_stand_once(empty: tuple[Settings, Lake]) -> None:
    settings, lake = empty
    days = [day_after(n) for n in range(3)]
    put(lake, "reflections", *[reflection("Said again.", day=day, trust="user") for day in days])
    put(lake, "observations", observation("said again"))
    settings.workspace.mkdir(exist_ok=True)
    assert texts(settings, lake) == ["Said again."]
    settings.memory_file.write_text("- Said again.\n")
    assert texts(settings, lake) == []
