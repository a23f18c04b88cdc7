"""The effect of memory: what a day repeats of the memory before it, and where it would have been shown."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from typer.testing import CliRunner

from memory_pipeline.cli.console import FAILED, MISUSED
from memory_pipeline.cli.main import app
from memory_pipeline.defs.effect import effect_assets
from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.effect.cases import DayEffect, effect_on
from memory_pipeline.effect.history import MemoryHistory
from memory_pipeline.effect.pairs import read_pairs
from memory_pipeline.effect.summary import NoSessionsError, effect_over, totals
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.quality.report import make_report
from memory_pipeline.settings import load_settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import openai_server
from memory_pipeline_tests.rows import DAY, at, changed, day_after, decision, observation, pattern, proposal, put, say

RULE = "Never use npm in this project, use pnpm."
AGAIN = "no, never use npm in this project, use pnpm"
NEXT = day_after(1)
LINE = f"p-{DAY:%Y%m%d}-001"
ERROR = "Error: listen EADDRINUSE: address already in use :::3000"


@pytest.fixture
def opened() -> Workspace:
    """A rule that was said on one day and offered, and said again on the next in another session."""
    workspace = Workspace.open(load_settings())
    lake = workspace.lake
    say(lake, "s1", f"user: {RULE}", "assistant: I will.", "user: Thanks, please go on.")
    put(lake, "observations", observation(RULE))
    put(lake, "proposals", proposal(1, RULE, session_ids=["s1"]))
    say(lake, "s2", "user: Build the page.", "tool: Bash(command=npm install)", f"user: {AGAIN}", day=NEXT)
    return workspace


def effect(workspace: Workspace, day: date = NEXT, *, in_full: bool = False) -> DayEffect:
    (found,) = effect_on(workspace, [day], in_full=in_full)
    return found


def approve(workspace: Workspace, day: date) -> None:
    decide(workspace, {LINE: "approved"}, at("18:00", day))
    reconcile(workspace, at("18:00", day))


def test_a_repetition_of_an_offered_line(opened: Workspace) -> None:
    found = effect(opened)
    (case,) = found.cases
    assert (case.need.kind, case.need.text, case.state, case.line_id) == ("correction", AGAIN, "offered", LINE)
    assert (found.sessions, found.needs["correction"], found.count("offered"), case.since) == (1, 1, 1, DAY)


def test_the_quality_report_has_the_same_counts_by_day(opened: Workspace) -> None:
    figures = {figure.key: figure.by_day for figure in make_report(opened, [], {}, at()).figures}
    assert figures["said_again"] == {DAY: 0, NEXT: 1}
    assert figures["failed_again"] == {DAY: 0, NEXT: 0}
    assert sum(figures["said_again"].values()) == totals(effect_over(opened, None, None).days)["again_offered"]


def test_memory_of_the_same_day_or_session_counts_as_unknown(opened: Workspace) -> None:
    assert effect(opened, DAY).cases == []
    say(opened.lake, "s1", f"user: {AGAIN}", day=NEXT, clock="11:00")
    assert [case.need.session_id for case in effect(opened).cases] == ["s2"]


@pytest.mark.parametrize(("approved_on", "state"), [(DAY, "approved"), (NEXT, "offered"), (day_after(3), "offered")])
def test_a_line_is_approved_from_the_day_after_its_approval(opened: Workspace, approved_on: date, state: str) -> None:
    approve(opened, approved_on)
    assert [case.state for case in effect(opened).cases] == [state]


def test_lines_that_were_rejected_or_only_observed(opened: Workspace) -> None:
    put(opened.lake, "events", decision(LINE, "rejected"))
    observed = {line.line_id: line.state_before(NEXT) for line in MemoryHistory(opened).lines}
    assert observed == {LINE: "rejected", observation(RULE)["observation_id"]: "observed"}
    assert [case.state for case in effect(opened).cases] == ["observed"]
    opened.lake.replace("observations", opened.lake.read("observations").clear(), [DAY])
    assert [case.state for case in effect(opened).cases] == ["rejected"]


def test_words_of_another_project_or_meaning_do_not_repeat_it(opened: Workspace) -> None:
    lake = opened.lake
    for name, text in (("s3", "Should we never use npm in this project?"), ("s4", "Always use npm, never pnpm.")):
        say(lake, name, f"user: {text}", day=day_after(2))
    assert effect(opened, day_after(2)).cases == []
    say(lake, "s5", f"user: {AGAIN}", day=day_after(3))
    sessions = lake.read("sessions", [DAY, day_after(3)]).with_columns(
        project=pl.when(pl.col("session_id") == "s5").then(pl.lit("other")).otherwise(pl.lit("shop"))
    )
    for (day,), rows in sessions.partition_by("day", as_dict=True).items():
        lake.replace("sessions", rows, [day])
    put(lake, "proposals", proposal(1, RULE, day=day_after(1), session_ids=["s1"], projects=["shop"]))
    states = {case.line_id for case in effect(opened, day_after(3)).cases}
    assert f"p-{NEXT:%Y%m%d}-001" not in states


def test_a_line_that_the_day_replaces_was_out_of_date(opened: Workspace) -> None:
    approve(opened, DAY)
    say(opened.lake, "s3", "user: From now on use npm instead of pnpm in this project.", day=day_after(2))
    found = effect(opened, day_after(2))
    assert ([case.line_id for case in found.outdated], found.cases) == ([LINE], [])


def test_the_places_that_would_have_shown_it(opened: Workspace) -> None:
    approve(opened, DAY)
    (case,) = effect(opened, in_full=True).cases
    assert set(case.shown_by) == {"brief", "hint"}
    assert effect(opened, in_full=True).brief_tokens > 0


def test_an_error_of_a_known_pattern(opened: Workspace) -> None:
    lake = opened.lake
    first = say(lake, "s8", "user: Start it.", "tool: Bash(command=npm run dev)", f"tool!: {ERROR}")
    spans = [{"message_id": first[2]["message_id"], "start": 0, "end": len(ERROR)}]
    adds = "`npm run dev` fails here; run `fuser -k 3000/tcp` first."
    put(lake, "friction_clusters", pattern(1, "busy", kind="recurring_failure", adds=adds, evidence=spans))
    again = ERROR.replace("3000", "4000")
    say(lake, "s9", "user: Start it.", "tool: Bash(command=npm run dev)", f"tool!: {again}", day=NEXT, clock="12:00")
    found = effect(opened, in_full=True)
    (case,) = [case for case in found.cases if case.need.kind == "failure"]
    assert (case.need.text, case.line, case.shown_by) == (again, adds, ("hint",))
    assert totals([found])["failed_again"] == 1


def test_a_model_chooses_pairs_by_number(opened: Workspace) -> None:
    say(opened.lake, "s3", "user: I prefer the package manager that we agreed on, the fast one.", day=day_after(2))
    answer = '{"pairs": [{"remark": 1, "line": 1}, {"remark": 9, "line": 1}, {"remark": 1, "line": 7}]}'
    with openai_server(lambda _: answer) as server:
        model = {"reflector_model": "openai:played", "reflector_base_url": server.url, "reflector_price": "0/0"}
        workspace = Workspace(changed(opened.settings, **model), opened.lake)
        (case,) = effect(workspace, day_after(2), in_full=True).cases
    assert (case.line_id, case.state, case.by_model) == (LINE, "offered", True)
    assert RULE in server.requests[0].prompt


def test_the_pairs_of_an_answer() -> None:
    answer = '{"pairs": [{"remark": 3, "line": "L12"}, {"remark": 8, "line": 1}]}'
    assert read_pairs(f"Sure:\n{answer}") == [(3, 12), (8, 1)]
    assert read_pairs("NONE") == []


def test_limits_are_named(opened: Workspace) -> None:
    approve(opened, NEXT)
    opened.settings.memory_file.write_text("## Hard Rules\n- A line by hand.\n", "utf-8")
    put(opened.lake, "proposals", proposal(2, "Always squash the commits of a branch.", session_ids=["gone"]))
    future = decision(f"p-{DAY:%Y%m%d}-002") | {"happened_at": at("18:00", date(2099, 1, 1))}
    put(opened.lake, "events", future | {"day": date(2099, 1, 1)})
    notes = " ".join(effect_over(opened, None, None).notes)
    for part in (
        *("figures of less than a week say little", "Without a model only nearly the same words"),
        *("1 approved lines were since removed", "1 lines of MEMORY.md were written by hand"),
        *("1 decisions have a time in the future", "1 lines come from sessions that were deleted"),
    ):
        assert part in notes, notes


def test_a_span_without_sessions(opened: Workspace) -> None:
    with pytest.raises(NoSessionsError, match=f"the sessions go from {DAY} to {NEXT}"):
        effect_over(opened, day_after(20), day_after(30))


def run(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["proof", *args], prog_name="memory")
    return done.exit_code, done.stdout, done.stderr


def test_the_command(opened: Workspace) -> None:
    code, text, _ = run()
    assert code == 0
    assert "1 of your 2 instructions and corrections repeat a line that was approved (0) or offered (1)" in text
    assert f"(memory why {LINE})" in text and AGAIN in text
    code, text, _ = run("--json", "--from", f"{NEXT}", "--to", f"{NEXT}")
    found = json.loads(text)
    assert (code, found["total"]["again_offered"], found["cases"][0]["line_id"]) == (0, 1, LINE)
    assert found["weeks"][0]["week"] == f"{NEXT - timedelta(days=NEXT.weekday())}"


def test_bad_calls(tmp_path: Path) -> None:
    assert run() == (FAILED, "", "No session has been read yet; `memory run` reads them.\n")
    code, _, error = run("--from", "2025-03-09", "--to", "2025-03-01")
    assert (code, "no day lies between them" in error) == (MISUSED, True)
    code, _, error = run("--from", "yesterday")
    assert (code, "write it as YYYY-MM-DD" in error) == (MISUSED, True)


def test_the_asset_has_the_counts_of_each_day(opened: Workspace) -> None:
    days = [f"{DAY}", f"{NEXT}"]
    with dg.DagsterInstance.ephemeral() as instance:
        assets = [effect_assets(Placement(opened.settings))]
        tags = {"dagster/asset_partition_range_start": days[0], "dagster/asset_partition_range_end": days[1]}
        done = dg.materialize(assets, instance=instance, tags=tags, resources={"workspace": WorkspaceResource()})
        assert done.success
        stored = {}
        for record in instance.fetch_materializations(dg.AssetKey("memory_effect"), limit=10).records:
            made = record.asset_materialization
            assert made is not None
            stored[made.partition] = made.metadata
    assert [stored[day]["again_offered"].value for day in days] == [0, 1]
    assert AGAIN in stored[days[1]]["cases"].value


def test_the_schedule_asks_for_days_with_sessions(opened: Workspace) -> None:
    definitions = build_definitions(Placement(opened.settings))
    for day, asked in ((NEXT, [f"{NEXT}"]), (day_after(2), [])):
        moment = at("07:20", day + timedelta(days=1))
        context = dg.build_schedule_context(
            scheduled_execution_time=moment,
            repository_def=definitions.get_repository_def(),
            resources={"workspace": WorkspaceResource()},
        )
        schedule = definitions.get_schedule_def("effect_at_twenty_past_seven")
        requests = schedule.evaluate_tick(context).run_requests or []
        assert [request.partition_key for request in requests] == asked
