"""The stage that writes a day's rows of `proposals` and `supports`: reflections that are offered, and repetitions of
known lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.lake.rows import (
    ObservationRow,
    ProposalRow,
    ReflectionRow,
    SourceRow,
    SupportRow,
    distinct,
    typed_rows,
)
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.duplicates import Known, KnownLines
from memory_pipeline.proposals.events import (
    APPROVED,
    DECIDED,
    PENDING,
    ProposalLog,
    content_hash,
    last_numbers,
    proposal_id,
    with_sessions,
)
from memory_pipeline.proposals.memory_file import read_lines
from memory_pipeline.proposals.offering import (
    LASTING,
    MAX_OF_SESSION,
    is_offered,
    is_quoted,
    line_score,
    use_score,
    why_left_out,
)
from memory_pipeline.reflections.types import section_at
from memory_pipeline.scope import may_end
from memory_pipeline.stages import Built
from memory_pipeline.text.encoder import encoder_of
from memory_pipeline.text.relation import differs
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.daily_log.notes import SESSION as NOTES
from memory_pipeline.workspace.daily_log.notes import notes_in
from memory_pipeline.workspace.daily_log.render import LogReflection, write_reflection
from memory_pipeline.workspace.workspace import Workspace

VERSION = "11"
PASSING = "progress"
"""The kind that only matters on its day, whatever its priority."""
STATES = (*LASTING, "state_change")
"""Kinds that can end an older line."""


MAX_QUOTED, MAX_LINE = 2, 160
"""Maximum number of lines that the daily log quotes without a model's summary, and characters of each."""


class ScoredLine(ReflectionRow):
    """A row of `reflections` with the score of a proposal from it."""

    worth: float


class KnownProposal(ProposalRow):
    """A row of `proposals` with its status, which is pending for new ones."""

    status: str


class ProposalsStage:
    """The stage that offers the lines selected by `offering`, each once: a line with the meaning of an earlier proposal
    is merged into that. An existing proposal is never changed or withdrawn."""

    tables = ("supports", "proposals")

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.settings, self.lake = workspace.settings, workspace.lake
        self._known: KnownLines | None = None
        """All known lines, read once; a range of days adds to them."""
        self._made: dict[str, KnownProposal] = {}
        self._again: dict[str, list[tuple[date, datetime]]] = {}
        """Repetitions on other days, by proposal."""
        self._last_number = Counter[str]()
        """The highest number of each day's proposals, including those whose rows are lost."""
        self._has_vector: set[str] | None = None

    def fingerprint(self, day: date) -> str:
        """A hash of the reflections alone: earlier proposals and MEMORY.md only prevent offers, and must not make a
        finished day out of date."""
        return fingerprint_of(VERSION, self.lake.digest("reflections", [day]))

    def build(self, day: date) -> Built:
        of_day = self.lake.read("proposals", [day])
        observed = self._observed(day)
        lines = self._lines(day, observed)
        if not lines:
            write_reflection(self.settings.daily_log(day), day, None, backups=self.settings.backups)
            return Built({"supports": pl.DataFrame(schema=TABLES["supports"].columns), "proposals": of_day})
        known, vectors = self._known_lines(), self._vectors([line["sources"][0] for line in lines])
        rows: list[ProposalRow] = []
        supports: list[SupportRow] = []
        texts = list[str]()
        # rebuilding a day includes what it offered before
        leads = (observed.get(row["sources"][1]) for row in typed_rows(of_day, ProposalRow) if row["sources"][1:])
        of_session = Counter(lead["session_id"] for lead in leads if lead)
        for line in lines:
            sources = [observed[s] for s in line["sources"] if s in observed]
            if why_left_out(line["text"], sources):
                continue
            text, vector = one_line(line["text"]), vectors.get(line["sources"][0])
            texts.append(text)
            replaced = self._replaced_proposals(known, line, text) if line["kind"] in STATES else []
            if same := _same(known, line, text, vector, replaced):
                supports += self._support(day, same, line, sources)
                continue
            is_new = (replaced or is_offered(line, sources)) and not self._is_replaced(known, line, text)
            if is_new and (is_quoted(line, sources) or _is_within_limit(of_session, sources)):
                rows.append(self._offer(day, known, line | {"text": text}, sources, replaced, vector))
        frames = {
            "supports": pl.DataFrame(supports, schema=TABLES["supports"].columns),
            "proposals": pl.concat([of_day, pl.DataFrame(rows, schema=TABLES["proposals"].columns)]),
        }
        self._log(day, frames, texts)
        return Built(frames)

    def _offer(
        self,
        day: date,
        known: KnownLines,
        line: ScoredLine,
        sources: Sequence[SourceRow],
        replaced: list[str],
        vector: Sequence[float] | None,
    ) -> ProposalRow:
        """The row of a new proposal, which is known from now on."""
        self._last_number[f"{day:%Y%m%d}"] += 1
        number = self._last_number[f"{day:%Y%m%d}"]
        row = _row(day, number, line | {"owner": self.settings.owner}, sources, replaced)
        self._made[row["proposal_id"]] = {**row, "status": PENDING}
        known.add(Known(row["proposal_id"], row["text"], tuple(row["projects"] or ())), row["sources"], vector)
        return row

    def _log(self, day: date, frames: Mapping[str, pl.DataFrame], best_first: Sequence[str]) -> None:
        """Write the daily log without notes about removed proposals, so that no log keeps withdrawn words."""
        lines = self.lake.read("reflections", [day])
        standing = pl.col("sources").list.first().is_in(lines["reflection_id"].to_list())
        offered = frames["proposals"].filter(standing)
        new = set(offered["proposal_id"])
        older = dict.fromkeys(p for p in frames["supports"]["proposal_id"] if p not in new)
        again = [self._made[p]["text"] for p in older if p in self._made]
        best = offered.sort("worth", descending=True, nulls_last=True)["text"].to_list()
        groups = {"New": best, "Said again": again, "Nothing new; most important": best_first}
        plain = next((_quoted(label, texts) for label, texts in groups.items() if texts), "Nothing was offered.")
        note = LogReflection(
            next((summary for summary in lines["summary"] if summary), plain),
            lines.height,
            int(lines["input_tokens"].max() or 0),  # type: ignore[arg-type]
            int(lines["tokens"].sum()),
            frames["supports"].height,
            dict(offered.select("proposal_id", "text").iter_rows()),
        )
        write_reflection(self.settings.daily_log(day), day, note, backups=self.settings.backups)

    def _lines(self, day: date, observed: Mapping[str, SourceRow]) -> list[ScoredLine]:
        """The day's lines that may matter later and contain words said on this day, best first."""
        lines: list[ScoredLine] = [
            {**line, "worth": self._score(line, observed)}
            for line in typed_rows(self.lake.read("reflections", [day]), ReflectionRow)
            if line["kind"] != PASSING and any(s in observed and observed[s]["day"] == day for s in line["sources"])
        ]
        return sorted(
            lines, key=lambda r: (-with_sessions(r["worth"], r["sessions"]), -r["support"], r["reflection_id"])
        )

    def _score(self, line: ReflectionRow, observed: Mapping[str, SourceRow]) -> float:
        """The score of the words and their speaker, plus that of the purpose if a model chose them; a model's line has
        the trust of its sources."""
        lead = observed.get(line["sources"][0], line)
        sources = [observed[s] for s in line["sources"] if s in observed]
        value = line_score(line["text"], line["kind"], lead["trust"], line["priority"])
        if is_quoted(line, sources):
            return value
        return round(value + use_score(line, section_at(self.settings.sections, line["section"]), sources), 3)

    def _known_lines(self) -> KnownLines:
        if self._known is None:
            self._known = KnownLines()
            log = ProposalLog(self.lake)
            first = dict(log.table("proposals").select("proposal_id", "last_seen").iter_rows())
            self._made = {
                row["proposal_id"]: row | {"last_seen": first[row["proposal_id"]]} for row in log.memory_lines
            }
            for again in log.table("supports").select("proposal_id", "day", "said_at").iter_rows():
                self._again.setdefault(again[0], []).append(again[1:])
            vectors = self._vectors([row["sources"][1] for row in self._made.values() if len(row["sources"]) > 1])
            for proposal_id, row in self._made.items():
                vector = vectors.get(row["sources"][1]) if len(row["sources"]) > 1 else None
                projects = tuple(row["projects"] or ())
                self._known.add(Known(proposal_id, row["text"], projects), row["sources"], vector)
            decided = log.events(DECIDED, ~pl.col("proposal_id").is_in([*self._made, *log.fixes]))
            for text in decided["text"]:  # proposals whose rows are lost: a user's decision is not asked for again
                self._known.add(Known(None, text))
            lines = read_lines(self.settings.memory_file)
            self._last_number = last_numbers(log, [line.proposal_id for line in lines if line.proposal_id])
            for line in lines:
                if not line.is_struck:
                    of = line.proposal_id if line.proposal_id in self._made else None
                    projects = tuple(self._made[of]["projects"] or ()) if of else ()
                    self._known.add(Known(of, line.text, projects))
        return self._known

    def _observed(self, day: date) -> dict[str, SourceRow]:
        days = lookback(day, self.settings.lookback_days)
        observations = typed_rows(self.lake.read("observations", days), ObservationRow)
        rows: list[SourceRow] = [*observations, *notes_in(self.workspace, days)]
        return {row["observation_id"]: row for row in rows}

    def _vectors(self, observation_ids: Sequence[str]) -> dict[str, list[float]]:
        if self._has_vector is None:
            self._has_vector = set(self.lake.read("embeddings", columns=["source_id"])["source_id"])
        wanted = [o for o in dict.fromkeys(observation_ids) if o in self._has_vector]
        return vectors_of(self.settings, encoder_of(self.settings.embedding_model), wanted)

    def _replaced_proposals(self, known: KnownLines, line: ScoredLine, text: str) -> list[str]:
        """Earlier proposals, pending or approved, that this line ends."""
        over = [known.from_sources([s]) for s in line.get("superseded") or []]
        over += [known.exactly(text) for text in line.get("contradicts") or []]
        found = [k.proposal_id for k in [*over, *known.replaced_by(text)] if k and k.proposal_id]
        return [
            p
            for p in dict.fromkeys(found)
            if self._made[p]["status"] in (PENDING, APPROVED)
            and self._said(p, line["day"]) <= _last_repetition(line)
            and may_end(line["projects"], self._made[p]["projects"])
        ]

    def _is_replaced(self, known: KnownLines, line: ScoredLine, text: str) -> bool:
        """Whether a later line ends this one."""
        newer = [k.proposal_id for k in known.replacing(text) if k.proposal_id]
        return any(
            self._said(p, line["day"]) > _last_repetition(line) and may_end(self._made[p]["projects"], line["projects"])
            for p in newer
        )

    def _said(self, proposal_id: str, day: date) -> datetime:
        """The time of a proposal's last repetition on another day: an interrupted run may have stored those of this
        day."""
        again = [said_at for of_day, said_at in self._again.get(proposal_id, ()) if of_day != day]
        return max([_last_repetition(self._made[proposal_id]), *again])

    def _support(self, day: date, same: Known, line: ScoredLine, observed: Sequence[SourceRow]) -> list[SupportRow]:
        """The support that the day adds to a proposal; empty for a line that a user wrote into MEMORY.md."""
        if same.proposal_id is None:
            return []
        own = set(self._made[same.proposal_id]["sources"])
        new = [o for o in observed if o["day"] == day and o["observation_id"] not in own]
        if not new:
            return []
        return [
            {
                "day": day,
                "proposal_id": same.proposal_id,
                "reflection_id": line["reflection_id"],
                "sessions": len({o["session_id"] for o in new}),
                "session_ids": sorted({o["session_id"] for o in new}),
                "said_at": max(o["observed_at"] for o in new),
                "sources": [o["observation_id"] for o in new],
                "cwds": distinct(o["cwd"] for o in new),
                "projects": distinct(o["project"] for o in new),
                "worth": line["worth"],
            }
        ]


def _same(
    known: KnownLines, line: ScoredLine, text: str, vector: Sequence[float] | None, replaced: Sequence[str]
) -> Known | None:
    """The known line into which this one is merged, or None."""
    same = known.from_sources(line["sources"])
    if same and same.proposal_id not in replaced and not differs(text, same.text):
        return same  # otherwise the reflector merged the two
    return None if replaced else known.same(text, vector, line["projects"] or ())


def _is_within_limit(of_session: Counter[str], sources: Sequence[SourceRow]) -> bool:
    """Count a model's line for its session; False if the session has too many."""
    session = sources[0]["session_id"] if sources else NOTES
    of_session[session] += 1
    return of_session[session] <= MAX_OF_SESSION or session == NOTES


def _quoted(label: str, lines: Sequence[str]) -> str:
    """A sentence that quotes the first of these lines."""
    more = f" and {len(lines) - MAX_QUOTED} more" if len(lines) > MAX_QUOTED else ""
    quotes = ", ".join(f"“{clip(line, MAX_LINE)}”" for line in lines[:MAX_QUOTED])
    return f"{label}: {quotes}{more}."


def _last_repetition(row: ScoredLine | KnownProposal) -> datetime:
    """The time of the last repetition; for rows of earlier versions, their day."""
    seen = row["last_seen"]
    return datetime.combine(row["day"], time.min, UTC) if seen is None else seen


def _row(day: date, number: int, line: ScoredLine, observed: Sequence[SourceRow], replaced: list[str]) -> ProposalRow:
    return {
        "day": day,
        "proposal_id": proposal_id(day, number),
        "section": line["section"],
        "text": line["text"],
        "priority": line["priority"],
        "sources": [line["reflection_id"], *line["sources"]],
        "support": line["support"],
        "content_hash": content_hash(line["text"]),
        "evidence": [span for o in observed for span in o["evidence"]],
        "sessions": len({o["session_id"] for o in observed}),
        "session_ids": sorted({o["session_id"] for o in observed}),
        "last_seen": line["last_seen"],
        "supersedes": replaced,
        "worth": line["worth"],
        "cwds": line["cwds"],
        "projects": line["projects"],
        "owner": line["owner"],
    }
