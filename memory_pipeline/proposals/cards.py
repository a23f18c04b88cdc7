"""A proposal as it is shown to a user: the line with its origin, and in the terminal and browser reviews its quotes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from memory_pipeline.days import day_of, lookback
from memory_pipeline.lake.rows import ObservationRow, ProposalState, RememberedRow, SessionRow, SourceRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.context import NOT_KEPT, Context, contexts, text_before
from memory_pipeline.proposals.events import PROMOTED, ProposalLog, is_fix
from memory_pipeline.proposals.fixes import change_of, to_make
from memory_pipeline.proposals.outcomes import expiring_on
from memory_pipeline.proposals.remembering import describe_requester
from memory_pipeline.proposals.review_file import Proposal
from memory_pipeline.scope import describe_projects
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip, squeeze
from memory_pipeline.workspace.daily_log.notes import SESSION, notes_in
from memory_pipeline.workspace.workspace import Workspace

QUOTES_SHOWN, QUOTE_LENGTH = 2, 300
MAX_QUOTED = 100
"""Maximum characters of a quote within the line about the origin."""
WHO = {
    "user": "you",
    "assistant": "the assistant",
    "tool": "the result of a tool",
    "paste": "something you pasted",
    "injected": "text inserted by a program",
    "model": "the model",
}


@dataclass(frozen=True, kw_only=True)
class Card(Proposal):
    """A proposal for display: `quotes` have a text and its file and line, `places` is the number of all quotes.

    No text has control characters, which could move the cursor, or hidden ones: users review what they see.
    """

    mark: str
    quotes: tuple[tuple[str, str], ...]
    places: int
    contexts: tuple[Context, ...]
    """The context before and after each quote."""
    to_make: str
    """The instruction for a fix that the user, or their agent, makes after approval."""


def cards_of(workspace: Workspace, rows: Sequence[ProposalState]) -> list[Card]:
    """The cards of these rows of `ProposalLog.frame`, in order; each table is read once."""
    log = ProposalLog(workspace.lake)
    fixes, days = log.fixes, days_of(workspace, log, rows)
    wanted = {span["message_id"] for row in rows for span in row["evidence"] or []}
    columns = ["message_id", "text", "source_file", "source_line"]
    messages = workspace.lake.read("messages", days, columns).filter(pl.col("message_id").is_in(list(wanted)))
    said = {m["message_id"]: m for m in messages.iter_rows(named=True)}
    shown = {s["message_id"] for row in rows for s in (row["evidence"] or [])[:QUOTES_SHOWN]}
    around = contexts(workspace.lake, days, shown)
    cards = []
    for row, proposal in zip(rows, as_offered(workspace, log, rows), strict=True):
        fix, spans = fixes.get(row["proposal_id"]), row["evidence"] or []
        visible = {"section": one_line(proposal.section), "evidence": one_line(proposal.evidence)}
        card = Card(
            **vars(proposal) | visible | {"text": row["text"] if fix else one_line(row["text"])},
            mark=workspace.settings.marks[row["priority"]],
            quotes=tuple(_quote(row, span, said.get(span["message_id"])) for span in spans[:QUOTES_SHOWN]),
            places=fix["occurrences"] if fix else len(spans),
            contexts=tuple(around[m] for span in spans[:QUOTES_SHOWN] if (m := span["message_id"]) in around),
            to_make=to_make(fix, row["text"]) if fix and not fix["place"] else "",
        )
        cards.append(card)
    return cards


def _quote(row: ProposalState, span: Mapping[str, Any], message: Mapping[str, Any] | None) -> tuple[str, str]:
    """The quoted words, and their file and line."""
    if message is None:
        return f"message {span['message_id']} is no longer in the tables", ""
    words = clip(one_line(message["text"][span["start"] : span["end"]]), QUOTE_LENGTH)
    shown = "in just these words:" if words == one_line(row["text"]) else f"“{words}”" if words else NOT_KEPT
    return shown, one_line(f"{message['source_file']}:{message['source_line']}")


def as_offered(
    workspace: Workspace, log: ProposalLog, rows: Iterable[ProposalState], *, now: datetime | None = None
) -> list[Proposal]:
    """Rows of `ProposalLog.frame` as items of REVIEW.md."""
    rows, now = list(rows), now or datetime.now(UTC)
    lines = evidence_lines(workspace, log, rows)
    return [as_proposal(workspace.settings, log, row, now, lines[row["proposal_id"]]) for row in rows]


def as_proposal(
    settings: Settings, log: ProposalLog, row: ProposalState, now: datetime, evidence: str = ""
) -> Proposal:
    fix = log.fixes.get(row["proposal_id"]) if is_fix(row["proposal_id"]) else None
    change = change_of(fix) if fix else None
    return Proposal(row["proposal_id"], row["section"], row["text"], evidence, expiring_on(settings, row, now), change)


def days_of(workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState]) -> set[date]:
    """The days on which the evidence of these rows may have been said."""
    settings = workspace.settings
    days = {day for row in rows for day in lookback(row["day"], settings.lookback_days)}
    fixes = log.fixes if any(is_fix(row["proposal_id"]) for row in rows) else {}
    return days | {day_of(fixes[p]["said_at"], settings.zone) for row in rows if (p := row["proposal_id"]) in fixes}


def evidence_lines(workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState]) -> dict[str, str]:
    """The origin of each proposal in one line: day and time, the speaker, the session, the number of repetitions, and
    the lines that it replaces."""
    fixes = [row for row in rows if is_fix(row["proposal_id"])]
    return _origins_of_fixes(workspace, log, fixes) | _origins_of_lines(
        workspace, log, [row for row in rows if not is_fix(row["proposal_id"])]
    )


def _origins_of_lines(workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState]) -> dict[str, str]:
    if not rows:
        return {}
    lake, settings, days = workspace.lake, workspace.settings, days_of(workspace, log, rows)
    wanted = {source for row in rows for source in row["sources"]}
    observations = lake.read("observations", days).filter(pl.col("observation_id").is_in(list(wanted)))
    sources: list[SourceRow] = [*typed_rows(observations, ObservationRow), *notes_in(workspace, sorted(days))]
    observed = {o["observation_id"]: o for o in sources}
    # the observation whose words each proposal has
    leads = {row["proposal_id"]: next((observed[s] for s in row["sources"] if s in observed), None) for row in rows}
    known = {p: lead for p, lead in leads.items() if lead}
    sessions = {s["session_id"]: s for s in typed_rows(lake.read("sessions", days), SessionRow)}
    quotes = _quotes(lake, [o for row in rows if (o := known.get(row["proposal_id"])) and o["text"] != row["text"]])
    after = _context_notes(lake, known)
    asked = {r["proposal_id"]: r for r in typed_rows(lake.read("remembered", days), RememberedRow)}
    olds = {old for row in rows for old in row.get("supersedes") or []}
    texts = dict(log.events(PROMOTED).select("proposal_id", "text").iter_rows()) if olds else {}
    found = {}
    for row in rows:
        p = row["proposal_id"]
        line = (
            _request_line(settings, row, asked[p]) if p in asked else _line(settings, row, leads[p], sessions, quotes)
        )
        replaced = [texts[old] for old in row.get("supersedes") or [] if old in texts]
        found[p] = line + after.get(p, "") + "".join(f" · replaces: “{clip(text, MAX_QUOTED)}”" for text in replaced)
    return found


def _origins_of_fixes(workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState]) -> dict[str, str]:
    """The origin of friction fixes: the first occurrence of the pattern, and its last day."""
    zone, fixes = workspace.settings.zone, [log.fixes[row["proposal_id"]] for row in rows]
    if not fixes:
        return {}
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
    return (f" · {where}" if where else "") + (f": “{clip(quote, MAX_QUOTED)}”" if quote else "")


def _line(
    settings: Settings,
    row: ProposalState,
    lead: SourceRow | None,
    sessions: Mapping[str, SessionRow],
    quotes: Mapping[str, str],
) -> str:
    times = row["support"]
    if lead is None:
        return f"{row['day']}{_where_and_quote(row['projects'])} · said {times} times"
    session, who = sessions.get(lead["session_id"]), WHO[lead["trust"]]
    said_at = lead["observed_at"].astimezone(settings.zone)
    line = _source(said_at, lead["untimed"], who, session["name"] if session else None)
    if lead["session_id"] == SESSION:
        line = f"{said_at:%Y-%m-%d} · {who}, by hand in the day's log"
    quote = quotes.get(lead["observation_id"], "")
    line += _where_and_quote(row["projects"], quote if quote != squeeze(row["text"]) else "")
    line += f" · said {times} times" if times > 1 else ""
    spread = row["sessions"] or 1
    return line + (f" in {spread} sessions" if spread > 1 else "")


def _request_line(settings: Settings, row: ProposalState, asked: RememberedRow) -> str:
    """The origin of a line that a user asked to remember."""
    again = row["support"] - 1
    line = f"{asked['said_at'].astimezone(settings.zone):%Y-%m-%d %H:%M} · {describe_requester(asked)}"
    return line + _where_and_quote(row["projects"]) + (f" · said {again} times since" if again else "")


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
    return {
        p: f" · {'answers' if context.is_answer else 'after'}: “{text_before(context, MAX_QUOTED)}”"
        for p, message in firsts.items()
        if (context := found.get(message)) and context.before
        if leads[p]["kind"] == "correction" or _is_question(context)
    }


def _is_question(context: Context) -> bool:
    return context.is_answer or context.before.rstrip('*_"”» ').endswith(("?", "？"))
