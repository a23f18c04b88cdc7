"""Events of proposals: the append-only table `events`, and the log that is computed from it.

`ProposalLog` is a snapshot of the tables. A status is a join over it; nothing is updated in place. Rows
are added only through an `OpenLog`, which holds a lock, so that it has read the current state.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Self

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import FixRow, NewFix, ProposalState, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, make_folder, write_atomically
from memory_pipeline.proposals.offering import OF_PRIORITY
from memory_pipeline.text.priorities import MEDIUM
from memory_pipeline.text.similarity import words
from memory_pipeline.workspace.daily_log.render import LogDecision, write_decisions
from memory_pipeline.workspace.workspace import Workspace

PENDING = "pending"
APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED = "approved", "rejected", "expired", "invalid", "superseded"
WITHDRAWN = "withdrawn"
DECISIONS = (APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED, WITHDRAWN)
"""The possible outcomes of a proposal, which has exactly one unless it is pending."""
REVIEW_SURFACE, COMMAND_SURFACE, PAGE_SURFACE, TODOIST_SURFACE = "REVIEW.md", "command", "page", "todoist"
USER_SURFACES = (REVIEW_SURFACE, COMMAND_SURFACE, PAGE_SURFACE, TODOIST_SURFACE)
"""The surfaces on which a user decides."""
AUTO_SURFACE = "auto"
"""The surface of decisions in `automatic`."""
EXPIRY_SURFACE, SUPERSESSION_SURFACE, FRICTION_SURFACE = "expiry", "supersession", "friction"
DECIDED, SHOWN, DISPLACED, SHOWN_DAY, REOFFERED = "decided", "shown", "displaced", "shown_day", "reoffered"
PROMOTED, APPLIED, WOULD_PROMOTE = "promoted", "applied", "would_promote"
KEYS = {
    DECIDED: ["proposal_id", "again"],
    SHOWN: ["proposal_id", "surface", "external_id", "happened_at"],
    DISPLACED: ["proposal_id", "surface", "happened_at"],
    SHOWN_DAY: ["proposal_id", "surface", "day"],
    REOFFERED: ["proposal_id"],
    PROMOTED: ["proposal_id"],
    APPLIED: ["proposal_id"],
    WOULD_PROMOTE: ["proposal_id"],
}
"""Kinds of events, each with the columns that identify an event; only the first one with the same values counts."""
FIRST_REMEMBERED = 10_001
"""Number of a day's first proposal from `memory remember`. Proposals of the stage have lower numbers: a run continues
from the highest number that it read when it began, and must not use one that was assigned meanwhile."""
SAID_AGAIN, MAX_SESSIONS = 0.3, 4
"""Score bonus for each further session, and the number of sessions from which it no longer grows."""
MEMORY_FILE = "MEMORY.md"
_ID = re.compile(r"p-(\d{8})-(\d+)")
_FIX_ID = re.compile(r"f-\d{8}-\d{3,}")
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Decision:
    """The outcome of a proposal; `section` is set if a user chose another one."""

    proposal_id: str
    decision: str
    surface: str
    text: str
    section: str | None = None
    reason: str | None = None


class ProposalLog:
    """All proposals and their events. Each table is read once, on first use."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._tables: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """All rows of a table, including those added since; for `proposals` also the rows of `remembered` and
        `friction_fixes`."""
        if name not in self._tables:
            rows = self.lake.read(name)
            if name == "proposals":
                asked, fixes = self.table("remembered"), self.table("friction_fixes")
                rows = pl.concat([rows, _as_proposals(asked, _REMEMBERED), _as_proposals(fixes, _FIX)])
            self._tables[name] = rows
        return self._tables[name]

    def events(self, kind: str, *conditions: pl.Expr) -> pl.DataFrame:
        """The events of a kind that satisfy the conditions."""
        return self.table("events").filter(pl.col("kind") == kind, *conditions)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Every proposal with its `status` (pending, or its first decision) and the text, section, reason, surface and
        time of that decision.

        `support`, `sessions` and `last_seen` include merged lines. `on_display` says whether a user can see it now,
        `first_shown` when it appeared, and `shown_on` on which days a run displayed it.
        """
        lasting = self.displays.filter(pl.col("surface") != COMMAND_SURFACE)  # listing by the command is momentary
        return _joined(self.table("proposals"), self.decisions, self.table("supports"), lasting)

    @cached_property
    def fixes(self) -> dict[str, FixRow]:
        """The proposals that are friction fixes, by id."""
        return {row["proposal_id"]: row for row in typed_rows(self.table("friction_fixes"), FixRow)}

    @property
    def memory_lines(self) -> list[ProposalState]:
        """The proposals whose approval adds a line to MEMORY.md."""
        fixes, rows = self.fixes, typed_rows(self.frame, ProposalState)
        return [row for row in rows if (p := row["proposal_id"]) not in fixes or adds_to_memory(fixes[p])]

    @property
    def decisions(self) -> pl.DataFrame:
        """The valid decisions; for proposals that were offered again, only those since."""
        again = pl.col("proposal_id").is_in(self.events(REOFFERED)["proposal_id"].to_list())
        return self.events(DECIDED, again == pl.col("again").fill_null(False))

    @property
    def displays(self) -> pl.DataFrame:
        """One row per proposal and surface: how often it `came` and `went`, when it came `first`, and the `days` on
        which it was there.

        A proposal is displayed if it came more often than it went; the order of the events may be wrong if a clock was.
        """
        came, went, days = (pl.col("kind") == kind for kind in (SHOWN, DISPLACED, SHOWN_DAY))
        return (
            self.table("events")
            .filter(came | went | days)
            .group_by("proposal_id", "surface")
            .agg(
                came.sum().alias("came"),
                went.sum().alias("went"),
                pl.col("happened_at").filter(came).min().alias("first"),
                pl.col("day").filter(came | days).unique().alias("days"),
            )
        )

    @property
    def status(self) -> Mapping[str, str]:
        """The status of each proposal, by id."""
        return dict(self.frame.select("proposal_id", "status").iter_rows())

    def rows(self, ids: Iterable[str]) -> dict[str, ProposalState]:
        """These proposals by id, rows of `frame`; unknown ids are left out."""
        found = self.frame.filter(pl.col("proposal_id").is_in(list(ids)))
        return {row["proposal_id"]: row for row in typed_rows(found, ProposalState)}

    def pending(self) -> list[ProposalState]:
        """The pending proposals, best first: by score and sessions, then by support, then by the last time it was said.
        Fixes come last, most severe first."""
        return sorted(typed_rows(self.frame.filter(pl.col("status") == PENDING), ProposalState), key=sort_key)

    def after(self, decisions: Sequence[Decision], now: datetime) -> ProposalLog:
        """The log as it would be with these decisions; stores nothing."""
        if not decisions:
            return self
        supposed = ProposalLog(self.lake)
        supposed._tables = {
            **self._tables,
            "events": pl.concat([self.table("events"), self._rows_of(decisions, now.date(), now)]),
        }
        return supposed

    def shown_on(self, surface: str) -> set[str]:
        """The proposals that were ever shown on a surface."""
        return set(self.events(SHOWN, pl.col("surface") == surface)["proposal_id"])

    def standing_on(self, surface: str) -> set[str]:
        """The proposals that are still shown on a surface."""
        return set(self.displays.filter(pl.col("surface") == surface, pl.col("came") > pl.col("went"))["proposal_id"])

    def _rows_of(self, decisions: Sequence[Decision], day: date, now: datetime) -> pl.DataFrame:
        content = dict(self.table("proposals").select("proposal_id", "content_hash").iter_rows())
        again = set(self.events(REOFFERED)["proposal_id"])
        rows = [
            asdict(d) | {"content_hash": content.get(d.proposal_id), "again": d.proposal_id in again or None}
            for d in decisions
        ]
        return event_rows(DECIDED, rows, day, now)


_NO_IDS = pl.lit([], dtype=pl.List(pl.String))
_REMEMBERED = {
    **dict.fromkeys(("sources", "session_ids"), _NO_IDS),
    **{name: pl.lit(1) for name in ("support", "sessions")},
    **{name: pl.lit(None) for name in ("evidence", "supersedes")},
    "last_seen": pl.col("said_at"),
    "cwds": pl.when(pl.col("cwd").is_not_null()).then(pl.concat_list("cwd")),
    "projects": pl.when(pl.col("project").is_not_null()).then(pl.concat_list("project")),
}
"""Columns of `proposals` that a row of `remembered` lacks: it was said once."""
_FIX = {
    # a fix that is no line of MEMORY.md has its file as its section
    "section": pl.when(pl.col("place").is_null()).then("target_file").otherwise(pl.coalesce("section", "target_file")),
    "priority": pl.lit(MEDIUM),
    "sources": _NO_IDS,
    "support": pl.col("occurrences"),
    "last_seen": pl.col("last_day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
}
"""Columns of `proposals` that a row of `friction_fixes` lacks."""


def _as_proposals(rows: pl.DataFrame, missing: Mapping[str, pl.Expr]) -> pl.DataFrame:
    columns = TABLES["proposals"].columns
    return rows.select(missing.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in columns.items())


def _all_of(column: str) -> pl.Expr:
    """The entries of all lists of a column."""
    return pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)


def _joined(
    proposals: pl.DataFrame, decisions: pl.DataFrame, supports: pl.DataFrame, displays: pl.DataFrame
) -> pl.DataFrame:
    """The rows of `ProposalState`: every proposal with its first valid decision, the support merged into it, and where
    it is displayed."""
    merged = supports.group_by("proposal_id").agg(
        pl.col("sources").list.len().sum().cast(pl.Int64).alias("more_support"),
        _all_of("session_ids").alias("more_sessions"),
        pl.col("said_at").max(),
        _all_of("cwds").alias("more_cwds"),
        _all_of("projects").alias("more_projects"),
        pl.col("worth").max().alias("more_worth"),
    )
    decided = (
        decisions.sort("happened_at")
        .unique("proposal_id", keep="first")
        .select(
            "proposal_id",
            pl.col("decision").alias("status"),
            pl.col("text").alias("decided_text"),
            pl.col("section").alias("decided_section"),
            pl.col("content_hash").alias("decided_on"),
            "reason",
            "surface",
            pl.col("happened_at").alias("decided_at"),
        )
    )
    # the id alone could be that of another line, if rows were lost and rebuilt by a version that reused numbers
    decided = decided.join(proposals.select("proposal_id", "content_hash"), on="proposal_id").filter(
        pl.col("decided_on").is_null() | (pl.col("decided_on") == pl.col("content_hash"))
    )
    shown = displays.group_by("proposal_id").agg(
        (pl.col("came") > pl.col("went")).any().alias("on_display"),
        pl.col("first").min().alias("first_shown"),
        _all_of("days").unique().sort().alias("shown_on"),
    )
    found = proposals
    for other in (decided.drop("decided_on", "content_hash"), merged, shown):
        found = found.join(other, on="proposal_id", how="left")
    return (
        found.with_columns(
            pl.col("on_display").fill_null(False),
            pl.col("status").fill_null(PENDING),
            (pl.col("support") + pl.col("more_support").fill_null(0)),
            # the number may be larger: rows of old versions have no ids
            pl.max_horizontal(
                "sessions", pl.concat_list(pl.col("session_ids", "more_sessions").fill_null([])).list.n_unique()
            ),
            pl.max_horizontal("last_seen", "said_at").alias("last_seen"),
            # a rule may be mentioned in passing before somebody states it
            pl.when(pl.col("worth").is_not_null()).then(pl.max_horizontal("worth", "more_worth")).alias("worth"),
            *(
                pl.concat_list(pl.col(name, f"more_{name}").fill_null([])).list.unique().list.sort().alias(name)
                for name in ("cwds", "projects")
            ),
        )
        .drop("more_support", "more_sessions", "said_at", "more_cwds", "more_projects", "more_worth")
        .sort("proposal_id")
    )


def event_rows(kind: str, rows: Iterable[Mapping[str, object]], day: date, now: datetime) -> pl.DataFrame:
    """A frame of `events`."""
    made = [{"day": day, "happened_at": now, "kind": kind, **row} for row in rows]
    return pl.DataFrame(made, schema=TABLES["events"].columns)


def proposal_id(day: date, number: int) -> str:
    """The id of the proposal with this number, counted from 1, of a day."""
    return f"p-{day:%Y%m%d}-{number:03d}"


def content_hash(line: str) -> str:
    """The hash of a proposal's words."""
    return hashlib.sha256(" ".join(words(line)).encode()).hexdigest()


def last_numbers(log: ProposalLog, others: Iterable[str] = ()) -> Counter[str]:
    """The highest number of each day (YYYYMMDD) among all events and these other ids: if rows of proposals are lost,
    decisions on them must not apply to new ones. Numbers of `memory remember` are left out."""
    found = Counter[str]()
    named = [log.table(table)["proposal_id"] for table in ("proposals", "supports", "events")]
    for one in {*others}.union(*named):
        if (known := _ID.fullmatch(one)) and (number := int(known[2])) < FIRST_REMEMBERED:
            found[known[1]] = max(found[known[1]], number)
    return found


def is_fix(proposal_id: str) -> bool:
    """Whether the id is that of a friction fix."""
    return _FIX_ID.fullmatch(proposal_id) is not None


def adds_to_memory(fix: FixRow | NewFix) -> bool:
    """Whether approval adds a line to MEMORY.md, like that of a proposal."""
    return bool(fix["adds"]) and fix["place"] == MEMORY_FILE


def with_sessions(value: float, sessions: int) -> float:
    """The score of a line that occurred in this number of sessions."""
    return value + SAID_AGAIN * (min(max(sessions, 1), MAX_SESSIONS) - 1)


def sort_key(row: ProposalState) -> tuple[bool, float, int, float, str]:
    """A sort key for rows of `ProposalLog.frame` that puts the most valuable for the reviewer first."""
    seen, fix = row["last_seen"] or _BEFORE_ALL, is_fix(row["proposal_id"])
    own = OF_PRIORITY[row["priority"]] if row["worth"] is None else row["worth"]
    score = own if fix else with_sessions(own, row["sessions"])
    return fix, -score, -row["support"], -seen.timestamp(), row["proposal_id"]


class OpenLog(ProposalLog):
    """A log to which rows can be added: it holds the lock."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace.lake)
        self.workspace = workspace

    @classmethod
    @contextlib.contextmanager
    def open(cls, workspace: Workspace, *, wait: float = LOCK_SECONDS) -> Iterator[Self]:
        """The log with the lock held. Raises filelock.Timeout, by default after a minute, when the holder must be
        hanging."""
        backups = workspace.settings.backups
        make_folder(backups)
        with FileLock(backups / "proposals.lock", timeout=wait):
            yield cls(workspace)

    def add(self, kind: str, rows: Iterable[Mapping[str, object]], now: datetime) -> None:
        """Add events on the day of `now`, except those whose key already has an event of the kind on any day."""
        made = event_rows(kind, rows, day_of(now, self.workspace.settings.zone), now)
        self._store("events", made, ["kind", *KEYS[kind]])

    def add_fixes(self, fixes: Sequence[NewFix], now: datetime) -> None:
        """Store new friction fixes."""
        day = day_of(now, self.workspace.settings.zone)
        made = pl.DataFrame([{"day": day, **fix} for fix in fixes], schema=TABLES["friction_fixes"].columns)
        self._store("friction_fixes", made, ["proposal_id"])

    def _store(self, table: str, made: pl.DataFrame, key: Sequence[str]) -> None:
        """Add the rows, all of one day, whose key is not in the table."""
        known = self.table(table)
        fresh = made.unique(key, keep="first", maintain_order=True)
        fresh = fresh.join(known.select(key), on=key, how="anti", nulls_equal=True)
        if fresh.is_empty():
            return
        self._tables[table] = pl.concat([known, fresh])
        self.__dict__.pop("frame", None)
        if table == "friction_fixes":
            self.__dict__.pop("fixes", None)
            self._tables.pop("proposals", None)

        def with_fresh(rows: pl.DataFrame) -> pl.DataFrame:  # other workers may have stored some meanwhile
            return pl.concat([rows, fresh.join(rows.select(key), on=key, how="anti", nulls_equal=True)])

        self.lake.update(table, with_fresh, fresh["day"][0])

    def record_decisions(self, decisions: Sequence[Decision], now: datetime) -> None:
        """Record the decisions and update the daily logs. If a process died in between, the next call completes its
        work."""
        settings = self.workspace.settings
        unlogged = settings.backups / "decisions.unlogged"
        if unlogged.exists():
            with contextlib.suppress(PermissionError):  # a log that somebody made read-only stays unchanged
                self._write_log(date.fromisoformat(unlogged.read_text("utf-8")))
            unlogged.unlink()
        if decisions:
            day = day_of(now, settings.zone)
            write_atomically(unlogged, f"{day}".encode(), expected=None, backups=None)
            self._store("events", self._rows_of(decisions, day, now), ["kind", *KEYS[DECIDED]])
            self._write_log(day)
            unlogged.unlink()

    def record(self, kind: str, ids: Iterable[str], now: datetime, *, surface: str) -> None:
        """Record an event of these proposals on the surface: `SHOWN_DAY`, displayed by a run today, or `DISPLACED`."""
        self.add(kind, [{"proposal_id": p, "surface": surface} for p in ids], now)

    def record_shown(self, ids: Iterable[str], now: datetime, *, surface: str) -> None:
        """Record proposals that now appear on the surface. One that is already there keeps its first time."""
        before = self.standing_on(surface)
        self.record(SHOWN, [p for p in dict.fromkeys(ids) if p not in before], now, surface=surface)

    def _write_log(self, day: date) -> None:
        settings = self.workspace.settings
        of_day = self.events(DECIDED, pl.col("day") == day).sort("happened_at", "proposal_id")
        columns = of_day.select("happened_at", "decision", "proposal_id", "text", "reason").iter_rows()
        lines = [LogDecision(f"{at.astimezone(settings.zone):%H:%M}", *said) for at, *said in columns]
        write_decisions(settings.daily_log(day), day, lines, backups=settings.backups)
