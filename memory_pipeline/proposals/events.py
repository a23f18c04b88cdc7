"""What happens to proposals: rows that are only ever added, and what they make of each proposal.

`ProposalLog` is one snapshot of the event tables. A status is a join over it; nothing is updated in place. Whoever adds
rows does so through a log that was opened for it, under a lock, so that what it read is what there is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Self

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import DecisionRow, FixRow, ProposalState, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, make_folder, write_atomically
from memory_pipeline.proposals.score import OF_PRIORITY, with_sessions
from memory_pipeline.text.priorities import MEDIUM
from memory_pipeline.workspace.daily_log.render import LogDecision, write_decisions
from memory_pipeline.workspace.workspace import Workspace

PENDING = "pending"
APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED = "approved", "rejected", "expired", "invalid", "superseded"
WITHDRAWN = "withdrawn"
DECISIONS = (APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED, WITHDRAWN)
"""The ends that a proposal can have; it has exactly one, or it is pending."""
REVIEW_SURFACE, COMMAND_SURFACE, PAGE_SURFACE, TODOIST_SURFACE = "REVIEW.md", "command", "page", "todoist"
AUTO_SURFACE = "auto"
"""Nobody's: see `auto_promotion`."""
EXPIRY_SURFACE, SUPERSESSION_SURFACE, FRICTION_SURFACE = "expiry", "supersession", "friction"
KEYS = {
    "decisions": ["proposal_id", "reoffered"],
    "promotions": ["proposal_id"],
    "auto_promotions": ["proposal_id"],
    "showings": ["proposal_id", "surface", "external_id", "shown_at"],
    "displacements": ["proposal_id", "surface", "displaced_at"],
    "shown_days": ["proposal_id", "surface", "day"],
    "reoffers": ["proposal_id"],
    "friction_fixes": ["proposal_id"],
    "applied_fixes": ["proposal_id"],
    "auto_fixes": ["proposal_id"],
}
"""Of what each table keeps one row for ever, the first."""
FIRST_REMEMBERED = 10_001
"""Number of a day's first proposal that was asked for by `memory remember`. Those that the stage makes have numbers
below: a run counts on from what it found when it began, and must not give a number that was given meanwhile."""
_ID = re.compile(r"p-(\d{8})-(\d+)")
_FIX_ID = re.compile(r"f-\d{8}-\d{3,}")
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Decision:
    """The end of a proposal, as a row of `decisions`; `section` where a user chose another one."""

    proposal_id: str
    decision: str
    surface: str
    text: str
    section: str | None = None
    reason: str | None = None


class ProposalLog:
    """All proposals and what happened to each. Every table is read once, when it is first asked for."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._tables: dict[str, pl.DataFrame] = {}
        self._frame: pl.DataFrame | None = None
        self._fixes: dict[str, FixRow] | None = None

    def table(self, name: str) -> pl.DataFrame:
        """All rows of an event table, with those that were added since; of `proposals` also those of `remembered`
        and of `friction_fixes`."""
        if name not in self._tables:
            rows = self.lake.read(name)
            if name == "proposals":
                fixes = _fixes_as_proposals(self.table("friction_fixes"))
                rows = pl.concat([rows, _as_proposals(self.table("remembered")), fixes])
            self._tables[name] = rows
        return self._tables[name]

    @property
    def frame(self) -> pl.DataFrame:
        """Every proposal with its `status` (pending, or its first decision), that decision's text, section,
        reason, surface and time.

        `support`, `sessions` and `last_seen` count what was merged into it too. `on_display` is whether a user can see
        it now, `first_shown` when it came, `shown_on` are the days on which a run had it there.
        """
        if self._frame is None:
            others = [self.table(name) for name in ("supports", "showings", "displacements", "shown_days")]
            self._frame = _joined(self.table("proposals"), self.decisions, *others)
        return self._frame

    @property
    def fixes(self) -> dict[str, FixRow]:
        """The friction fixes among the proposals, by id."""
        if self._fixes is None:
            self._fixes = {row["proposal_id"]: row for row in typed_rows(self.table("friction_fixes"), FixRow)}
        return self._fixes

    @property
    def decisions(self) -> pl.DataFrame:
        """The rows of `decisions` that count: of what was offered again, those since."""
        again = pl.col("proposal_id").is_in(self.table("reoffers")["proposal_id"].to_list())
        return self.table("decisions").filter(again == pl.col("reoffered").fill_null(False))

    @property
    def status(self) -> Mapping[str, str]:
        """Of each proposal by id."""
        return dict(self.frame.select("proposal_id", "status").iter_rows())

    def rows(self, ids: Iterable[str]) -> dict[str, ProposalState]:
        """These proposals by id, rows of `frame`; unknown ids are left out."""
        found = self.frame.filter(pl.col("proposal_id").is_in(list(ids)))
        return {row["proposal_id"]: row for row in typed_rows(found, ProposalState)}

    def pending(self) -> list[ProposalState]:
        """By score: the line's own and its sessions, then its support, then what was said last. Fixes come last, the
        most severe first."""
        return sorted(typed_rows(self.frame.filter(pl.col("status") == PENDING), ProposalState), key=sort_key)

    def after(self, decisions: Sequence[Decision], now: datetime) -> ProposalLog:
        """The log as it would be with these decisions; nothing is stored."""
        if not decisions:
            return self
        again = set(self.table("reoffers")["proposal_id"])
        rows = [
            asdict(d) | {"day": now.date(), "decided_at": now, "reoffered": d.proposal_id in again or None}
            for d in decisions
        ]
        supposed = ProposalLog(self.lake)
        made = pl.DataFrame(rows, schema=TABLES["decisions"].columns)
        supposed._tables = {**self._tables, "decisions": pl.concat([self.table("decisions"), made])}
        return supposed

    def shown_on(self, surface: str) -> set[str]:
        """The proposals that were ever shown on a surface."""
        return set(self.table("showings").filter(pl.col("surface") == surface)["proposal_id"])

    def standing_on(self, surface: str) -> dict[str, str | None]:
        """Likewise those that are still there, with the lines as they were put there last."""
        # how often it came and went, and not when it did last: a clock may have been wrong
        own = pl.col("surface") == surface
        gone = self.table("displacements").filter(own).group_by("proposal_id").len("went")
        came = pl.len().over("proposal_id").alias("came")
        shown = self.table("showings").filter(own).with_columns(came).sort("shown_at", maintain_order=True)
        last = shown.unique("proposal_id", keep="last").join(gone, on="proposal_id", how="left")
        there = last.filter(pl.col("came") > pl.col("went").fill_null(0))
        return dict(there.select("proposal_id", "lines").iter_rows())


def _with(rows: pl.DataFrame, fresh: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The rows that are stored, also by another worker meanwhile, and those of the fresh ones that are new to them."""
    return pl.concat([rows, fresh.join(rows.select(key), on=key, how="anti", nulls_equal=True)])


def proposal_id(day: date, number: int) -> str:
    """Of the proposal with this number, from 1, among those of a day."""
    return f"p-{day:%Y%m%d}-{number:03d}"


def last_numbers(log: ProposalLog, others: Iterable[str] = ()) -> dict[date, int]:
    """The highest number of each day that any event names, or one of these other ids: where rows of proposals are lost,
    the decisions on them must not become decisions on others. Of what a stage made, and not `memory remember`."""
    found: dict[date, int] = {}
    named = [log.table(table)["proposal_id"] for table in ("proposals", "supports", *KEYS)]
    for one in {*others}.union(*named):
        if known := _ID.fullmatch(one):
            try:
                day = datetime.strptime(known[1], "%Y%m%d").date()
            except ValueError:  # a user may write any id into MEMORY.md
                continue
            if (number := int(known[2])) < FIRST_REMEMBERED:
                found[day] = max(found.get(day, 0), number)
    return found


def is_fix(proposal_id: str) -> bool:
    """Whether the id is a friction fix's."""
    return _FIX_ID.fullmatch(proposal_id) is not None


def sort_key(row: ProposalState) -> tuple[bool, float, int, float, str]:
    """Sorts the row of `ProposalLog.frame` that has most for the reviewer to the front."""
    seen, fix = row["last_seen"] or _BEFORE_ALL, is_fix(row["proposal_id"])
    own = OF_PRIORITY[row["priority"]] if row["worth"] is None else row["worth"]
    score = own if fix else with_sessions(own, row["sessions"])
    return fix, -score, -row["support"], -seen.timestamp(), row["proposal_id"]


class OpenLog(ProposalLog):
    """A log that rows can be added to: nobody else adds any while it is open."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace.lake)
        self.workspace = workspace

    @classmethod
    @contextlib.contextmanager
    def open(cls, workspace: Workspace, *, wait: float = LOCK_SECONDS) -> Iterator[Self]:
        """Raises filelock.Timeout, by default after a minute: whoever has it for longer hangs."""
        backups = workspace.settings.backups
        make_folder(backups)
        with FileLock(backups / "proposals.lock", timeout=wait):
            yield cls(workspace)

    def append(self, table: str, rows: Sequence[Mapping[str, object]], now: datetime) -> None:
        """Add rows to the day of `now`; what has a row already, on any day, keeps it."""
        if not rows:
            return
        day, key, known = day_of(now, self.workspace.settings.zone), KEYS[table], self.table(table)
        made = pl.DataFrame([{"day": day, **row} for row in rows], schema=TABLES[table].columns)
        made = made.unique(key, keep="first", maintain_order=True)
        fresh = made.join(known.select(key), on=key, how="anti", nulls_equal=True)
        if fresh.is_empty():
            return
        self._tables[table] = pl.concat([known, fresh])
        self._frame = None
        if table == "friction_fixes":
            self._fixes = None
            self._tables.pop("proposals", None)
        self.lake.update(table, lambda rows: _with(rows, fresh, key), day)

    def record_decisions(self, decisions: Sequence[Decision], now: datetime) -> None:
        """The log of the day has what is on record. Where a process died in between, the next call completes it."""
        settings = self.workspace.settings
        unlogged = settings.backups / "decisions.unlogged"
        if unlogged.exists():
            with contextlib.suppress(PermissionError):  # whoever made a log read-only does not want it fixed
                self._write_log(date.fromisoformat(unlogged.read_text("utf-8")))
            unlogged.unlink()
        if decisions:
            day = day_of(now, settings.zone)
            write_atomically(unlogged, f"{day}".encode(), expected=None, backups=None)
            content = dict(self.table("proposals").select("proposal_id", "content_hash").iter_rows())
            again = set(self.table("reoffers")["proposal_id"])
            rows = [
                asdict(d)
                | {"decided_at": now, "content_hash": content.get(p := d.proposal_id), "reoffered": p in again or None}
                for d in decisions
            ]
            self.append("decisions", rows, now)
            self._write_log(day)
            unlogged.unlink()

    def record_shown(
        self,
        shown: Mapping[str, str | None],
        now: datetime,
        *,
        surface: str,
        lines: Mapping[str, str] | None = None,
    ) -> None:
        """Proposals that a user can see on the surface from now on, with what the surface calls each, if anything, and
        the ``lines`` that they are there.

        A proposal that is there already keeps its time.
        """
        before = self.standing_on(surface)
        rows = [
            {
                "proposal_id": p,
                "surface": surface,
                "shown_at": now,
                "external_id": external,
                "lines": (lines or {}).get(p),
            }
            for p, external in shown.items()
            if p not in before
        ]
        self.append("showings", rows, now)

    def record_day(self, now: datetime, *, surface: str, there: Iterable[str]) -> None:
        """Pending proposals that a run had on display there today."""
        self.append("shown_days", [{"proposal_id": p, "surface": surface} for p in there], now)

    def record_displaced(self, gone: Iterable[str], now: datetime, *, surface: str) -> None:
        """Proposals that a user can no longer see on the surface, though they are pending."""
        rows = [{"proposal_id": p, "surface": surface, "displaced_at": now} for p in gone]
        self.append("displacements", rows, now)

    def _write_log(self, day: date) -> None:
        settings = self.workspace.settings
        of_day = self.table("decisions").filter(pl.col("day") == day).sort("decided_at", "proposal_id")
        lines = [
            LogDecision(
                f"{r['decided_at'].astimezone(settings.zone):%H:%M}",
                r["decision"],
                r["proposal_id"],
                r["text"],
                r["reason"],
            )
            for r in typed_rows(of_day, DecisionRow)
        ]
        write_decisions(settings.daily_log(day), day, lines, backups=settings.backups)


def _as_proposals(remembered: pl.DataFrame) -> pl.DataFrame:
    """Rows of `remembered` as rows of `proposals`: said once, in no session, resting on nothing else."""
    none = pl.lit(None)
    given = {
        "sources": pl.lit([], dtype=pl.List(pl.String)),
        "support": pl.lit(1),
        "evidence": none,
        "sessions": pl.lit(1),
        "session_ids": pl.lit([], dtype=pl.List(pl.String)),
        "last_seen": pl.col("said_at"),
        "supersedes": none,
        "cwds": pl.when(pl.col("cwd").is_not_null()).then(pl.concat_list("cwd")),
        "projects": pl.when(pl.col("project").is_not_null()).then(pl.concat_list("project")),
    }
    columns = TABLES["proposals"].columns
    return remembered.select(given.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in columns.items())


def _fixes_as_proposals(fixes: pl.DataFrame) -> pl.DataFrame:
    """Rows of `friction_fixes` as rows of `proposals`. The section of what no line of ours can be is its file."""
    last = pl.col("last_day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    given = {
        "section": pl.when(pl.col("place").is_null())
        .then("target_file")
        .otherwise(pl.coalesce("section", "target_file")),
        "priority": pl.lit(MEDIUM),
        "sources": pl.lit([], dtype=pl.List(pl.String)),
        "support": pl.col("occurrences"),
        "last_seen": last,
    }
    columns = TABLES["proposals"].columns
    return fixes.select(given.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in columns.items())


def _on_display(showings: pl.DataFrame, displacements: pl.DataFrame) -> pl.DataFrame:
    """The proposals that came to a lasting surface more often than they were displaced there. To be listed by the
    command is a moment."""
    # how often, and not when last: a clock may have been wrong
    key = ["proposal_id", "surface"]
    came = showings.filter(pl.col("surface") != COMMAND_SURFACE).group_by(key).len("came")
    went = displacements.group_by(key).len("went")
    there = came.join(went, on=key, how="left").filter(pl.col("came") > pl.col("went").fill_null(0))
    return there.select("proposal_id", pl.lit(True).alias("on_display")).unique()


def _shown_on(showings: pl.DataFrame, shown_days: pl.DataFrame) -> pl.DataFrame:
    """Per proposal, when it first came, and the days on which it was on display; of an older version's, those on which
    it came."""
    came = showings.filter(pl.col("surface") != COMMAND_SURFACE)
    both = pl.concat(
        [came.select("proposal_id", "day", "shown_at"), shown_days.select("proposal_id", "day")], how="diagonal"
    )
    return both.group_by("proposal_id").agg(
        pl.col("shown_at").min().alias("first_shown"), pl.col("day").unique().sort().alias("shown_on")
    )


def _all_of(column: str) -> pl.Expr:
    """What stands in any of the lists."""
    return pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)


def _joined(
    proposals: pl.DataFrame,
    decisions: pl.DataFrame,
    supports: pl.DataFrame,
    showings: pl.DataFrame,
    displacements: pl.DataFrame,
    shown_days: pl.DataFrame,
) -> pl.DataFrame:
    merged = supports.group_by("proposal_id").agg(
        pl.col("sources").list.len().sum().cast(pl.Int64).alias("more_support"),
        pl.col("sessions").sum().alias("more_counted"),
        _all_of("session_ids").alias("more_sessions"),
        pl.col("said_at").max(),
        _all_of("cwds").alias("more_cwds"),
        _all_of("projects").alias("more_projects"),
    )
    decided = (
        decisions.sort("decided_at")
        .unique("proposal_id", keep="first")
        .select(
            "proposal_id",
            pl.col("decision").alias("status"),
            pl.col("text").alias("decided_text"),
            pl.col("section").alias("decided_section"),
            pl.col("content_hash").alias("decided_on"),
            "reason",
            "surface",
            "decided_at",
        )
    )
    # an id alone could name another line, where rows were lost and made anew by a version that numbered them again
    decided = decided.join(proposals.select("proposal_id", "content_hash"), on="proposal_id").filter(
        pl.col("decided_on").is_null() | (pl.col("decided_on") == pl.col("content_hash"))
    )
    joined = proposals
    shown = _on_display(showings, displacements), _shown_on(showings, shown_days)
    for other in (decided.drop("decided_on", "content_hash"), merged, *shown):
        joined = joined.join(other, on="proposal_id", how="left")
    return (
        joined.with_columns(
            pl.col("status").fill_null(PENDING),
            pl.col("on_display").fill_null(False),
            (pl.col("support") + pl.col("more_support").fill_null(0)),
            pl.when(pl.col("session_ids").is_null())  # a row from before they were kept
            .then(pl.col("sessions").fill_null(1) + pl.col("more_counted").fill_null(0))
            .otherwise(pl.concat_list(pl.col("session_ids", "more_sessions").fill_null([])).list.n_unique())
            .alias("sessions"),
            pl.max_horizontal("last_seen", "said_at").alias("last_seen"),
            *(
                pl.concat_list(pl.col(name, f"more_{name}").fill_null([])).list.unique().list.sort().alias(name)
                for name in ("cwds", "projects")
            ),
        )
        .drop("more_support", "more_sessions", "more_counted", "said_at", "more_cwds", "more_projects")
        .sort("proposal_id")
    )
