"""The origin of a proposal, in one line for the reviewer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import (
    FixRow,
    ObservationRow,
    ProposalState,
    RememberedRow,
    SessionRow,
    SourceRow,
    typed_rows,
)
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.context import Context, contexts, text_before
from memory_pipeline.proposals.events import is_fix
from memory_pipeline.proposals.remembering import describe_requester
from memory_pipeline.scope import describe_projects
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip, squeeze
from memory_pipeline.workspace.daily_log.notes import SESSION, notes_in
from memory_pipeline.workspace.workspace import Workspace

QUOTED = 100
"""Maximum characters of the quote that is shown if the line has other words."""
WHO = {
    "user": "you",
    "assistant": "the assistant",
    "tool": "the result of a tool",
    "paste": "something you pasted",
    "injected": "text inserted by a program",
    "model": "the model",
}


def evidence_lines(
    workspace: Workspace, proposals: Sequence[ProposalState], replaced: Mapping[str, str] | None = None
) -> dict[str, str]:
    """For each proposal: day and time, the speaker, the session, the number of repetitions, and the line that it
    replaces.

    ``replaced`` maps the ids in `supersedes` to their texts.
    """
    fixes = {p["proposal_id"] for p in proposals if is_fix(p["proposal_id"])}
    if fixes:
        others = [p for p in proposals if p["proposal_id"] not in fixes]
        return _fix_origins(workspace, fixes) | evidence_lines(workspace, others, replaced)
    days = {p["day"] - timedelta(days=back) for p in proposals for back in range(workspace.settings.lookback_days)}
    wanted = {source for p in proposals for source in p["sources"]}
    observations = workspace.lake.read("observations", days).filter(pl.col("observation_id").is_in(list(wanted)))
    sources: list[SourceRow] = [*typed_rows(observations, ObservationRow), *notes_in(workspace, sorted(days))]
    observed = {o["observation_id"]: o for o in sources}
    sessions = {s["session_id"]: s for s in typed_rows(workspace.lake.read("sessions", days), SessionRow)}
    leads = {p["proposal_id"]: lead for p in proposals if (lead := _lead(p, observed))}
    quotes = _quotes(
        workspace.lake, [o for p in proposals if (o := leads.get(p["proposal_id"])) and o["text"] != p["text"]]
    )
    after = _context_notes(workspace.lake, leads)
    asked = {r["proposal_id"]: r for r in typed_rows(workspace.lake.read("remembered", days), RememberedRow)}
    return {
        (name := p["proposal_id"]): (
            _request_line(workspace.settings, p, asked[name])
            if name in asked
            else _line(workspace.settings, p, observed, sessions, quotes)
        )
        + after.get(name, "")
        + _replaces(p, replaced or {})
        for p in proposals
    }


def _fix_origins(workspace: Workspace, wanted: Collection[str]) -> dict[str, str]:
    """The origin of friction fixes: the first occurrence of the pattern, and its last day."""
    zone, rows = workspace.settings.zone, typed_rows(workspace.lake.read("friction_fixes"), FixRow)
    fixes = [row for row in rows if row["proposal_id"] in wanted]
    days = {day_of(fix["said_at"], zone) for fix in fixes}
    columns = ["message_id", "session_id", "role", "text", "untimed"]
    said = {m["message_id"]: m for m in workspace.lake.read("messages", days, columns).iter_rows(named=True)}
    names = dict(workspace.lake.read("sessions", days, ["session_id", "name"]).iter_rows())
    found = {}
    for fix in fixes:
        span = fix["evidence"][0] if fix["evidence"] else None
        message = said.get(span["message_id"]) if span else None
        line, quote = f"{fix['first_day']}", ""
        if message and span:
            who, name = WHO[message["role"]], names.get(message["session_id"])
            line = _source(fix["said_at"].astimezone(zone), message["untimed"], who, name)
            quote = squeeze(message["text"][span["start"] : span["end"]])
        line += _where_and_quote(fix["projects"], quote)
        found[fix["proposal_id"]] = f"{line} · last on {fix['last_day']}"
    return found


def _source(moment: datetime, untimed: str | None, who: str, session: str | None) -> str:
    return f"{moment:%Y-%m-%d} {untimed or f'{moment:%H:%M}'} · {who} in “{clip(session or '', 50)}”"


def _where_and_quote(projects: Sequence[str] | None, quote: str = "") -> str:
    where = describe_projects(projects)
    return (f" · {where}" if where else "") + (f": “{clip(quote, QUOTED)}”" if quote else "")


def _lead(proposal: ProposalState, observed: Mapping[str, SourceRow]) -> SourceRow | None:
    """The observation whose words the proposal has."""
    return next((observed[s] for s in proposal["sources"] if s in observed), None)


def _line(
    settings: Settings,
    proposal: ProposalState,
    observed: Mapping[str, SourceRow],
    sessions: Mapping[str, SessionRow],
    quotes: Mapping[str, str],
) -> str:
    lead, times = _lead(proposal, observed), proposal["support"]
    if lead is None:
        return f"{proposal['day']}{_where_and_quote(proposal['projects'])} · said {times} times"
    session, who = sessions.get(lead["session_id"]), WHO[lead["trust"]]
    said_at = lead["observed_at"].astimezone(settings.zone)
    line = _source(said_at, lead["untimed"], who, session["name"] if session else None)
    if lead["session_id"] == SESSION:
        line = f"{said_at:%Y-%m-%d} · {who}, by hand in the day's log"
    quote = quotes.get(lead["observation_id"], "")
    line += _where_and_quote(proposal["projects"], quote if quote != squeeze(proposal["text"]) else "")
    line += f" · said {times} times" if times > 1 else ""
    spread = proposal["sessions"] or 1
    return line + (f" in {spread} sessions" if spread > 1 else "")


def _request_line(settings: Settings, proposal: ProposalState, row: RememberedRow) -> str:
    """The origin of a line that a user asked to remember."""
    again = proposal["support"] - 1
    line = f"{row['said_at'].astimezone(settings.zone):%Y-%m-%d %H:%M} · {describe_requester(row)}"
    return line + _where_and_quote(proposal["projects"]) + (f" · said {again} times since" if again else "")


def _quotes(lake: Lake, leads: Sequence[SourceRow]) -> dict[str, str]:
    """The quoted evidence of each observation, by its id."""
    wanted = {span["message_id"] for o in leads for span in o["evidence"]}
    said = dict(lake.read("messages", {o["day"] for o in leads}, ["message_id", "text"]).iter_rows()) if wanted else {}
    return {
        o["observation_id"]: squeeze(
            " … ".join(said.get(span["message_id"], "")[span["start"] : span["end"]] for span in o["evidence"])
        )
        for o in leads
    }


def _context_notes(lake: Lake, leads: Mapping[str, SourceRow]) -> dict[str, str]:
    """The context of the user's corrections and answers, by proposal; other lines are self-contained."""
    firsts = {p: o["evidence"][0]["message_id"] for p, o in leads.items() if o["evidence"] and o["trust"] == "user"}
    found = contexts(lake, {leads[p]["day"] for p in firsts}, set(firsts.values()))
    contexts_by_proposal = {p: found[message] for p, message in firsts.items() if message in found}
    return {
        p: f" · {'answers' if context.is_answer else 'after'}: “{text_before(context, QUOTED)}”"
        for p, context in contexts_by_proposal.items()
        if context.before and (leads[p]["kind"] == "correction" or _is_question(context))
    }


def _is_question(context: Context) -> bool:
    return context.is_answer or context.before.rstrip('*_"”» ').endswith(("?", "？"))


def _replaces(proposal: ProposalState, replaced: Mapping[str, str]) -> str:
    texts = [replaced[p] for p in proposal.get("supersedes") or [] if p in replaced]
    return "".join(f" · replaces: “{clip(text, QUOTED)}”" for text in texts)
