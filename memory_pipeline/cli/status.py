"""`memory status`: what was read, what is unreadable, and what awaits the user."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from memory_pipeline.actions.outcomes import describe as describe_outcomes
from memory_pipeline.actions.outcomes import stored_times
from memory_pipeline.agents.agents import AGENTS, CannotConnectError
from memory_pipeline.agents.connecting import describe as describe_connections
from memory_pipeline.agents.hooks import describe as describe_hooks
from memory_pipeline.cli.console import AsJson, print_json, say_pair
from memory_pipeline.cli.dagster_state import dagster_state
from memory_pipeline.cli.summary import SHOWN, say_friction, say_list, say_not_read, say_problems
from memory_pipeline.cli.workspace import active_settings, shown_model
from memory_pipeline.days import today
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.embeddings.health import (
    days_by_words,
    is_made_elsewhere,
    lexical_only,
    set_aside_files,
    vector_problems,
)
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.config import NO_MODEL, NO_MODEL_FOR_FRICTION
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.silence import silences
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.applying import left_to_the_user, memory_loss
from memory_pipeline.proposals.automatic import report
from memory_pipeline.proposals.evaluation import judge_attention
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.recall.friction import summarize_patterns
from memory_pipeline.recall.usage import UNUSED_DAYS, unused_lines
from memory_pipeline.reflections.evaluation import is_waiting, why_waiting
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.expiring import expiring
from memory_pipeline.sessions.file_rows import not_read
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

SECONDS = 20.0
"""Maximum seconds for reading new files; reading years of history is left to `memory run`."""


def status(as_json: AsJson = False) -> None:
    """Show what was read, what is out of date and what awaits review."""
    settings = active_settings()
    workspace = Workspace(settings, Lake.from_settings(settings))
    lake, now = workspace.lake, datetime.now(UTC)
    catalogue = Catalogue(lake, settings)
    directories = roots(settings)
    # with a lake in a bucket, `memory admin push` publishes a file once its days are stored
    left = catalogue.refresh(find_sources(directories), seconds=SECONDS, is_stored=not lake.storage.is_far).left
    problems = vector_problems(workspace)  # first, as missing vectors make days out of date
    stages = Stages.from_settings(settings, catalogue, for_planning=True)
    planning = Lake.from_settings(settings, for_planning=True)
    days, log, is_elsewhere = catalogue.days(), ProposalLog(lake), is_made_elsewhere(workspace)
    soon, attended = expiring(catalogue, catalogue.present.values(), now), judge_attention(log, now)
    data = {
        "workspace": str(settings.workspace),
        "model": shown_model(settings, settings.observer.model),
        "examination": _examination(settings),
        "reflector": shown_model(settings, settings.reflector.model),
        "session_directories": [str(d) for d in directories],
        "files_still_to_be_read": left,
        **_files(lake),
        "days_with_sessions": len(days),
        "first_day": f"{catalogue.settings.start_date}",
        "days_before_start_or_in_future": [f"{day}" for day in catalogue.days_outside()],
        "is_made_elsewhere": is_elsewhere,
        "days_out_of_date": [
            f"{day}"
            for day in days
            if not (stages.is_sent(day) if is_elsewhere else stages.is_current(day, without_vectors=bool(problems)))
        ],
        "days_by_words": [f"{day}" for day in days_by_words(workspace, days)],
        "lexical_only": bool(lexical_only(settings)),
        "deleted_soon": soon._asdict() | {"sentence": soon.sentence(now)} if soon else None,
        "problems": [*problems, *filter(None, [memory_loss(lake, settings.memory_file)])],
        **_observing(workspace),
        **_silence_counts(lake, catalogue),
        "reflections_waiting": {f"{d}": why_waiting(lake, d) for d in lake.days("reflections") if is_waiting(lake, d)},
        "days_to_distil": [] if is_elsewhere else _days_to_distil(Workspace(settings, planning)),
        "proposals": _states(log, fixes=False),
        "friction_fixes": _states(log, fixes=True),
        "fixes_to_make": left_to_the_user(log, now - timedelta(days=settings.proposal_expiry_days)),
        **summarize_patterns(settings),
        "auto_promotion": report(workspace, log),
        "unused_lines": {line.proposal_id: line.text for line in unused_lines(settings, lake, today(settings.zone))},
        "agents": _agents(settings),
        "hints": dict(stored_times(settings)),
        **dagster_state(settings, days),
        "report": str(page) if (page := settings.report_dir / "quality.html").exists() else None,
        "review_left": None if attended.passed else attended.sentence,
        "set_aside": [str(path) for path in set_aside_files(workspace)],  # last, as everything was read by now
    }
    if as_json:
        print_json(data)
    else:
        _print(data)


def _examination(settings: Settings) -> str | None:
    """The result of the model's examination as a sentence; None without a model."""
    if not settings.observer.model:
        return None
    from memory_pipeline.observations.examination import result_of  # needed with a model only, as it imports much

    result = result_of(settings)
    if result is None:
        return "not examined: `memory setup --exam MODEL`"
    return f"{result.sentence}. {result.reason} It is not used." if result.reason else result.sentence


def _states(log: ProposalLog, *, fixes: bool) -> dict[str, int]:
    """The number of proposals, or of friction fixes among them, by state."""
    of_kind = log.frame.filter(pl.col("proposal_id").str.starts_with("f-") == fixes)
    return dict(of_kind.group_by("status").len().sort("status").iter_rows())


def _days_to_distil(workspace: Workspace) -> list[str]:
    """The last days of the due periods of each level."""
    return sorted({f"{period.last}" for stage in stages_of(workspace) for period in due_periods(stage)})


def _files(lake: Lake) -> dict[str, Any]:
    files = lake.read("files")
    unknown = (
        files.select("harness", "unknown_records")
        .explode("unknown_records", empty_as_null=True)
        .drop_nulls()
        .unnest("unknown_records")
    )
    counted = unknown.group_by("harness", "type").agg(pl.col("count").sum()).sort("count", "type", descending=True)
    read = files.filter(pl.col("reason").is_null())
    latest = read.group_by("harness").agg(pl.col("last_said_at").max())
    # the files of a session that continues in another file count as one
    session = pl.when(pl.col("part").is_null()).then("path").otherwise("session_id")
    return {
        "session_files": dict(read.group_by("harness").agg(session.n_unique()).sort("harness").iter_rows()),
        "last_session": {agent: f"{last:%Y-%m-%d}" for agent, last in latest.iter_rows() if agent},
        "sessions_left_out": dict(files.drop_nulls("excluded").sort("path").select("path", "excluded").iter_rows()),
        **not_read(lake),
        "unknown_record_types": {f"{h}: {t}": n for h, t, n in counted.iter_rows()},
    }


def _observing(workspace: Workspace) -> dict[str, Any]:
    """Pending work of observing, unusable answers, and the cost of models today."""
    segments = workspace.lake.read("segments", columns=["dedupe_key", "parsed"])
    windows = workspace.lake.read("windows", columns=["dedupe_key", "observed"]).filter(pl.col("observed"))
    calls = workspace.lake.read("ledger", [today(workspace.settings.zone)]).filter(~pl.col("cached").fill_null(False))
    return {
        "windows_to_observe": windows.join(segments, on="dedupe_key", how="anti").height,
        "segments_of_unusable_answers": segments.filter(~pl.col("parsed").fill_null(True)).height,
        "model_calls_today": calls.height,
        "model_tokens_today": int(calls["input_tokens"].sum()) + int(calls["output_tokens"].sum()),
        "spent_today_usd": float(calls["cost_usd"].sum()),
    }


def _silence_counts(lake: Lake, catalogue: Catalogue) -> dict[str, Any]:
    """The number of windows without observations, by reason; a session without a window counts as one."""
    found = silences(lake, catalogue)
    return {
        "windows": lake.read("windows", catalogue.days(), ["day"]).height + sum(not s.is_window for s in found),
        "windows_with_nothing": dict(sorted(Counter(silence.reason for silence in found).items())),
    }


def _agents(settings: Settings) -> dict[str, str]:
    """How each agent is shown the memory."""
    try:
        connected, asking = describe_connections(settings), describe_hooks(settings)
        names = [agent.name for agent in AGENTS if agent.name in connected or agent.name in asking]
        return {name: ", ".join(filter(None, (connected.get(name), asking.get(name)))) for name in names}
    except (CannotConnectError, OSError) as error:
        return {"": str(error)}


def _print(data: dict[str, Any]) -> None:
    say_pair("workspace", data["workspace"])
    say_pair("model", data["model"] or NO_MODEL)
    if data["examination"]:
        say_pair("", data["examination"])
    _print_reading(data)
    _print_days(data)
    say_problems(data["problems"], data["set_aside"])
    _print_checks(data)
    _print_automation(data)
    if calls := data["model_calls_today"]:
        spent, tokens = data["spent_today_usd"], data["model_tokens_today"]
        say_pair("models today", f"${spent:.2f} and {tokens:,} tokens spent or reserved, {calls:,} calls")
    _print_review(data)
    agents = "; ".join(f"{name}: {how}" if name else how for name, how in data["agents"].items())
    say_pair("connected agents", agents or "none; `memory agents` lists them")
    if data["hints"]:
        say_pair("hints on tool calls", describe_outcomes(data["hints"]))
    if unused := data["unused_lines"]:
        say_pair("never used", f"{len(unused)} approved lines in {UNUSED_DAYS} days; `memory status --json` has them")


def _print_reading(data: dict[str, Any]) -> None:
    say_pair("session directories", ", ".join(data["session_directories"]) or "none found")
    read = data["session_files"]
    say_pair("sessions read", f"{sum(read.values())}" if read else "none; `memory run` reads them")
    for agent, n in read.items():
        say_pair(f"  {agent}", f"{n}, the last on {data['last_session'][agent]}")
    if data["files_still_to_be_read"]:
        say_pair("files still to be read", f"{data['files_still_to_be_read']}; `memory run --all` reads them")
    if soon := data["deleted_soon"]:
        say_pair("deleted soon", f"{soon['sentence']}; `memory run --all` reads them", "yellow")
    say_not_read(data)
    say_list("sessions left out", [f"{path}: {why}" for path, why in data["sessions_left_out"].items()])
    unknown = [f"{name} ×{n}" for name, n in data["unknown_record_types"].items()]
    say_pair("unknown record types", f"{len(unknown)}" + (f" ({', '.join(unknown[:SHOWN])})" if unknown else ""))
    silent = data["windows_with_nothing"]
    if silent:
        say_pair("windows with nothing", f"{sum(silent.values())} of {data['windows']}; `memory show DAY` names them")
    for reason, n in silent.items():
        say_pair("", f"{n}: {reason}")


def _print_days(data: dict[str, Any]) -> None:
    say_pair("days with sessions", data["days_with_sessions"])
    if outside := data["days_before_start_or_in_future"]:
        first = data["first_day"]
        say_pair("days not kept", f"{len(outside)}, before the first day, {first}, or in the future ({outside[0]} …)")
        if outside[0] < first:
            say_pair("", f"`memory settings set start_date {outside[0]}`, then `memory backfill`, includes older days")
    is_elsewhere, days = data["is_made_elsewhere"], data["days_out_of_date"]
    command = "memory admin push" if is_elsewhere else "memory run --all"
    last = f" (last {days[-1]}); `{command}`" if days else ""
    say_pair("days to be sent" if is_elsewhere else "days out of date", f"{len(days)}{last}")
    if by_words := data["days_by_words"]:
        say_pair("days without vectors", f"{len(by_words)} (last {by_words[-1]}), compared by words until then")
    if left := data["windows_to_observe"]:
        say_pair("windows to observe", f"{left}; `memory run --all`")
    if unusable := data["segments_of_unusable_answers"]:
        say_pair("unusable answers", f"{unusable} segments with `parsed = false`; `memory sql` shows their `problem`")
    if waiting := data["reflections_waiting"]:
        day, why = list(waiting.items())[-1]
        say_pair("reflections waiting", f"{len(waiting)} days for the model (last {day}): {why}")
    if due := data["days_to_distil"]:
        say_pair("days to distil", f"{len(due)}; `memory run --all`, or at 05:00 while `memory ui` runs")


def _print_checks(data: dict[str, Any]) -> None:
    for name, failed in data["failing_checks"].items():
        more = f" and {len(failed) - SHOWN} more days" if len(failed) > SHOWN else ""
        say_pair("failing check", f"{name} on {', '.join(failed[-SHOWN:])}{more}")
    if data["failing_checks"]:
        page = f"{data['report']} and " if data["report"] else ""
        say_pair("", f"why: {page}`memory admin report`")


def _print_automation(data: dict[str, Any]) -> None:
    if data["record_problem"]:
        say_pair("record of runs", data["record_problem"])
    if made := {name: moment for name, moment in data["last_success"].items() if moment}:
        newest, oldest = max(made.values()), min(made, key=made.__getitem__)
        rest = "" if made[oldest] == newest else f"; the oldest is {oldest}, {made[oldest]}"
        say_pair("last built", f"{newest}{rest}")
    if known := data["automation"]:
        off = [name for name, is_on in known["switches"].items() if not is_on]
        runs = "run" if known["daemon"] else "not running: `memory ui` or `memory admin service install` starts them"
        say_pair("sensors and schedules", runs + (f"; switched off: {', '.join(off)}" if off else ""))


def _print_review(data: dict[str, Any]) -> None:
    say_pair("proposals", ", ".join(f"{n} {state}" for state, n in data["proposals"].items()) or "none yet")
    if data["review_left"]:
        say_pair("", data["review_left"], "yellow")
    say_friction(data)
    if not data["reflector"]:
        say_pair("", NO_MODEL_FOR_FRICTION)
    if fixes := data["friction_fixes"]:
        say_pair("friction fixes", ", ".join(f"{n} {state}" for state, n in fixes.items()))
    for how in data["fixes_to_make"].values():
        say_pair("", one_line(how.partition("\n")[0]).removesuffix(":") + "; `memory why ID` shows it")
    for sentence in data["auto_promotion"]:
        say_pair("auto-promotion", sentence)
