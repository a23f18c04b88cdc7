"""`memory status`: what was read, what is unreadable, and what awaits the user."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import polars as pl
import typer

from memory_pipeline.actions.outcomes import describe as describe_outcomes
from memory_pipeline.actions.outcomes import stored_times
from memory_pipeline.agents.agents import AGENTS, CannotConnectError
from memory_pipeline.agents.connecting import describe as describe_connections
from memory_pipeline.agents.hooks import describe as describe_hooks
from memory_pipeline.cli.console import MISUSED, one_sentence, print_json, say, say_pair
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
from memory_pipeline.llm.batch_file import read_batch_file
from memory_pipeline.llm.quality import NO_MODEL, NO_MODEL_FOR_FRICTION
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.silence import silences
from memory_pipeline.operations.retention import WORDS, retired_days
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.attention import judge_attention
from memory_pipeline.proposals.auto_fix import report as report_of_fixes
from memory_pipeline.proposals.auto_promotion import report
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.memory_copies import memory_loss
from memory_pipeline.recall.friction import summed_up
from memory_pipeline.recall.usage import UNUSED_DAYS, approved_lines, unused_lines, uses
from memory_pipeline.reflections.evaluation import is_waiting, why_waiting
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.expiring import expiring
from memory_pipeline.sessions.not_read import not_read
from memory_pipeline.settings import SettingError, Settings
from memory_pipeline.workspace.free_space import size_on_disk
from memory_pipeline.workspace.workspace import Workspace

MEGABYTE = 1_000_000
SECONDS = 20.0
"""Maximum seconds for reading new files; reading years of history is left to `memory run`."""


def status(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Show what was read, what is out of date and what awaits review."""
    settings = active_settings()
    lake = Lake.from_settings(settings)
    catalogue = Catalogue(lake, settings)
    with one_sentence(SettingError, code=MISUSED):
        directories = roots(settings)
    # with a lake in a bucket, `memory admin push` publishes a file once its days are stored
    left = catalogue.refresh(find_sources(directories), seconds=SECONDS, is_stored=not lake.storage.is_far).left
    problems = vector_problems(Workspace(settings, lake))  # first, as missing vectors make days out of date
    stages = Stages.from_settings(settings, catalogue, for_planning=True)
    planning = Lake.from_settings(settings, for_planning=True)
    days, log, is_elsewhere = catalogue.days(), ProposalLog(lake), is_made_elsewhere(Workspace(settings, lake))
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
        "days_by_words": [f"{day}" for day in days_by_words(Workspace(settings, lake), days)],
        "batch": _batch(settings),
        "lexical_only": bool(lexical_only(settings)),
        "deleted_soon": None,
        "problems": [*problems, *filter(None, [memory_loss(lake, settings.memory_file)])],
        "set_aside": [],
        **_observing(Workspace(settings, lake)),
        **_silence_counts(lake, catalogue),
        "reflections_waiting": _waiting_days(lake),
        "days_to_distil": [] if is_elsewhere else _days_to_distil(Workspace(settings, planning)),
        "proposals": _states(log, fixes=False),
        "friction_fixes": _states(log, fixes=True),
        "fixes_to_make": left_to_the_user(log, datetime.now(UTC) - timedelta(days=settings.proposal_expiry_days)),
        "auto_fix": report_of_fixes(Workspace(settings, lake), log, datetime.now(UTC)),
        **summed_up(settings),
        "auto_promotion": report(Workspace(settings, lake), log),
        **_usage(settings, lake),
        "agents": _agents(settings),
        "hints": dict(stored_times(settings)),
        **dagster_state(settings, days),
        "report": str(page) if (page := settings.report_dir / "quality.html").exists() else None,
        "review_left": None if (attended := judge_attention(log, datetime.now(UTC))).passed else attended.sentence,
        "sizes": _sizes(settings),
        "no_longer_kept": {table: len(days) for table, days in retired_days(planning).items()},
    }
    if soon := expiring(catalogue, catalogue.present.values(), datetime.now(UTC)):
        data["deleted_soon"] = soon._asdict() | {"sentence": soon.sentence(datetime.now(UTC))}
    data["set_aside"] = [str(path) for path in set_aside_files(Workspace(settings, lake))]  # everything was read by now
    if as_json:
        print_json(data)
    else:
        _print(data)


def _examination(settings: Settings) -> str | None:
    """The result of the model's examination as a sentence; None without a model."""
    if not settings.observer.model:
        return None
    from memory_pipeline.cli.examining import examination_in_words  # needed with a model only, as it imports the client

    return examination_in_words(settings)


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
    windows = lake.read("windows").filter(~pl.col("observed"))
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
        "hidden_characters": dict(
            files.filter(pl.col("hidden_characters") > 0).sort("path").select("path", "hidden_characters").iter_rows()
        ),
        "windows_not_observed": dict(windows.group_by("reason").len().sort("reason").iter_rows()),
    }


def _observing(workspace: Workspace) -> dict[str, Any]:
    """Pending work of observing, unusable answers, and the cost of models today."""
    segments = workspace.lake.read("segments", columns=["dedupe_key", "parsed"])
    windows = workspace.lake.read("windows", columns=["dedupe_key", "observed"]).filter(pl.col("observed"))
    calls = workspace.lake.read("ledger", [today(workspace.settings.zone)]).filter(~pl.col("cached").fill_null(False))
    by_stage = calls.group_by("stage").agg(
        pl.len(), (pl.col("input_tokens") + pl.col("output_tokens")).sum().alias("tokens"), pl.col("cost_usd").sum()
    )
    return {
        "windows_to_observe": windows.join(segments, on="dedupe_key", how="anti").height,
        "segments_of_unusable_answers": segments.filter(~pl.col("parsed").fill_null(True)).height,
        "model_calls_today": calls.height,
        "model_calls_today_by_stage": {
            stage: {"calls": n, "tokens": tokens, "usd": usd} for stage, n, tokens, usd in by_stage.iter_rows()
        },
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


def _usage(settings: Settings, lake: Lake) -> dict[str, Any]:
    """The recent uses of the memory by kind, and unused approved lines."""
    now = today(settings.zone)
    return {
        "uses": dict(sorted(Counter(use["kind"] for day, use in uses(settings) if day > _long_ago(now)).items())),
        "approved_lines": len(approved_lines(settings)),
        "unused_lines": {line.proposal_id: line.text for line in unused_lines(settings, lake, now)},
    }


def _long_ago(now: date) -> date:
    return now - timedelta(days=UNUSED_DAYS)


def _batch(settings: Settings) -> dict[str, Any] | None:
    """The pending batch at the model's provider."""
    batch = read_batch_file(settings).open
    if not batch:
        return None
    return {"name": batch.name, "model": batch.model, "requests": len(batch.requests), "sent_at": f"{batch.sent_at}"}


def _agents(settings: Settings) -> dict[str, str]:
    """How each agent is shown the memory."""
    try:
        connected, asking = describe_connections(settings), describe_hooks(settings)
        names = [agent.name for agent in AGENTS if agent.name in connected or agent.name in asking]
        return {name: ", ".join(filter(None, (connected.get(name), asking.get(name)))) for name in names}
    except (CannotConnectError, OSError) as error:
        return {"": str(error)}


def _sizes(settings: Settings) -> dict[str, int]:
    """Bytes on disk by folder of the workspace, largest first."""
    folders = {
        "tables": settings.lake_dir,
        "index": settings.index_dir,
        "Dagster's record": settings.dagster_home,
        "backups": settings.backups,
    }
    found = {name: size_on_disk(folder) for name, folder in folders.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _waiting_days(lake: Lake) -> dict[str, str]:
    """The days whose reflections wait for the model, with the reason."""
    return {f"{day}": why_waiting(lake, day) for day in lake.days("reflections") if is_waiting(lake, day)}


def _print(data: dict[str, Any]) -> None:
    say_pair("workspace", data["workspace"])
    say_pair("model", data["model"] or NO_MODEL)
    if data["examination"]:
        say_pair("", data["examination"])
    say_pair("session directories", ", ".join(data["session_directories"]) or "none found")
    read = data["session_files"]
    say_pair("sessions read", f"{sum(read.values())}" if read else "none; `memory run` reads them")
    for agent, n in read.items():
        say_pair(f"  {agent}", f"{n}, the last on {data['last_session'][agent]}")
    if data["files_still_to_be_read"]:
        say_pair("files still to be read", f"{data['files_still_to_be_read']}; `memory run --all` reads them")
    if soon := data["deleted_soon"]:
        say(f"{'deleted soon':<24}{soon['sentence']}; `memory run --all` reads them", "yellow")
    say_not_read(data)
    say_list("sessions left out", [f"{path}: {why}" for path, why in data["sessions_left_out"].items()])
    unknown = [f"{name} ×{n}" for name, n in data["unknown_record_types"].items()]
    say_pair("unknown record types", f"{len(unknown)}" + (f" ({', '.join(unknown[:SHOWN])})" if unknown else ""))
    if hidden := data["hidden_characters"]:
        most = max(hidden, key=hidden.__getitem__)
        say_pair("hidden characters", f"{sum(hidden.values()):,} taken out of {len(hidden)} files (most of {most})")
    silent = data["windows_with_nothing"]
    if silent:
        say_pair("windows with nothing", f"{sum(silent.values())} of {data['windows']}; `memory show DAY` names them")
    for reason, n in silent.items():
        say_pair("", f"{n}: {reason}")
    out_of_date = data["days_out_of_date"]
    say_pair("days with sessions", data["days_with_sessions"])
    outside = data["days_before_start_or_in_future"]
    if outside:
        first = data["first_day"]
        say_pair("days not kept", f"{len(outside)}, before the first day, {first}, or in the future ({outside[0]} …)")
        if outside[0] < first:
            say_pair("", f"`memory settings set start_date {outside[0]}`, then `memory backfill`, includes older days")
    command = "memory admin push" if data["is_made_elsewhere"] else "memory run --all"
    say_pair(
        "days to be sent" if data["is_made_elsewhere"] else "days out of date",
        f"{len(out_of_date)}" + (f" (last {out_of_date[-1]}); `{command}`" if out_of_date else ""),
    )
    if by_words := data["days_by_words"]:
        say_pair("days without vectors", f"{len(by_words)} (last {by_words[-1]}), compared by words until then")
    say_problems(data["problems"], data["set_aside"])
    for name, failed in data["failing_checks"].items():
        more = f" and {len(failed) - SHOWN} more days" if len(failed) > SHOWN else ""
        say_pair("failing check", f"{name} on {', '.join(failed[-SHOWN:])}{more}")
    if data["failing_checks"]:
        say_pair(
            "", f"why: {data['report']} and `memory admin report`" if data["report"] else "why: `memory admin report`"
        )
    _print_automation(data)
    if left := data["windows_to_observe"]:
        say_pair("windows to observe", f"{left}; `memory run --all`")
    if batch := data["batch"]:
        say_pair(
            "pending batch", f"{batch['requests']} requests, {batch['name']}; `memory admin batch` collects the answers"
        )
    if unusable := data["segments_of_unusable_answers"]:
        say_pair("unusable answers", f"{unusable} segments with `parsed = false`; `memory sql` shows their `problem`")
    if waiting := data["reflections_waiting"]:
        day, why = list(waiting.items())[-1]
        say_pair("reflections waiting", f"{len(waiting)} days for the model (last {day}): {why}")
    if due := data["days_to_distil"]:
        say_pair("days to distil", f"{len(due)}; `memory run --all`, or at 05:00 while `memory ui` runs")
    if calls := data["model_calls_today"]:
        spent, tokens = data["spent_today_usd"], data["model_tokens_today"]
        say_pair("models today", f"${spent:.2f} and {tokens:,} tokens spent or reserved, {calls:,} calls")
        for stage, of in sorted(data["model_calls_today_by_stage"].items()):
            say_pair("", f"{stage}: ${of['usd']:.2f}, {of['tokens']:,} tokens, {of['calls']:,} calls")
    say_pair("proposals", ", ".join(f"{n} {state}" for state, n in data["proposals"].items()) or "none yet")
    if data["review_left"]:
        say(f"{'':<24}{data['review_left']}", "yellow")
    say_friction(data)
    if not data["reflector"]:
        say_pair("", NO_MODEL_FOR_FRICTION)
    if fixes := data["friction_fixes"]:
        say_pair("friction fixes", ", ".join(f"{n} {state}" for state, n in fixes.items()))
    for how in data["fixes_to_make"].values():
        say_pair("", one_line(how.partition("\n")[0]).removesuffix(":") + "; `memory why ID` shows it")
    for sentence in data["auto_fix"]:
        say_pair("auto-fix", one_line(sentence))
    agents = "; ".join(f"{name}: {how}" if name else how for name, how in data["agents"].items())
    say_pair("connected agents", agents or "none; `memory agents connect` lists them")
    if data["hints"]:
        say_pair("hints on tool calls", describe_outcomes(data["hints"]))
    for sentence in data["auto_promotion"]:
        say_pair("auto-promotion", sentence)
    used = ", ".join(f"{n} {kind}" for kind, n in data["uses"].items())
    say_pair("uses of the memory", f"{used} in {UNUSED_DAYS} days" if used else f"none in {UNUSED_DAYS} days")
    if unused := data["unused_lines"]:
        share = f"{len(unused)} of {data['approved_lines']} approved lines"
        say_pair("never used", f"{share} in {UNUSED_DAYS} days; `memory status --json` names them in unused_lines")


def _print_automation(data: dict[str, Any]) -> None:
    if data["record_problem"]:
        say_pair("record of runs", data["record_problem"])
    if made := {name: moment for name, moment in data["last_success"].items() if moment}:
        newest, oldest = max(made.values()), min(made, key=made.__getitem__)
        told = newest if made[oldest] == newest else f"{newest}; the oldest is {oldest}, {made[oldest]}"
        say_pair("last built", told)
    if known := data["automation"]:
        off = [name for name, is_on in known["switches"].items() if not is_on]
        runs = "run" if known["daemon"] else "not running: `memory ui` or `memory admin service install` starts them"
        say_pair("sensors and schedules", runs + (f"; switched off: {', '.join(off)}" if off else ""))
        if since := known["stopped_since"]:
            say(f"{'':<24}The last run was at {since:%Y-%m-%d %H:%M} UTC; nothing has been updated since.", "red")
        for sentence in known["silent"].values():
            say(f"{'':<24}{sentence}", "red")
    told = ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in data["sizes"].items() if size >= MEGABYTE)
    say_pair("on disk", told or "less than a megabyte")
    if aged := data["no_longer_kept"]:
        days = {table: f"{n} days" if n != 1 else "1 day" for table, n in aged.items()}
        say_pair("deleted by retention", ", ".join(f"{'words' if t == WORDS else t} of {n}" for t, n in days.items()))
