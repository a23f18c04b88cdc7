"""No proposal vanishes and none ends twice, whatever happens in whatever order."""

from __future__ import annotations

import re
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import APPROVED, EXPIRED, PENDING, REJECTED, ProposalLog, is_fix
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.review import UnknownProposalError, decide, on_display, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.rows import at, day_after, events, fixable, observation, put, reflection, workspace

TOOLS = ("uv", "poetry", "conda", "hatch")
TEXTS = [f"Use {tool} for packages." for tool in TOOLS]
TEXTS += ["Use poetry instead of uv.", "Use uv instead of poetry.", "Use hatch, not conda."]
TEXTS += ["Never deploy on a Friday.", "Indent Makefiles with tabs.", "Store every time in UTC.", "Is it red?"]
BY_HAND = ["Fire at noon.", "The kiln runs from ~/old."]
LIMIT = 3


class Life(RuleBasedStateMachine):
    """A workspace over some weeks, with a person at REVIEW.md, at the command line and at MEMORY.md."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.settings, self.lake = workspace(Path(self.folder.name), pending_limit=LIMIT, auto_fix=True)
        self.workspace = Workspace(self.settings, self.lake)
        self.day = 0
        self.minutes = 0
        self.ended: dict[str, str] = {}
        self.made: set[str] = set()
        self.written = 0
        """Times that the person wrote their lines into MEMORY.md by hand."""

    def teardown(self) -> None:
        self.folder.cleanup()

    def now(self) -> datetime:
        self.minutes += 1
        return at("10:00", day_after(self.day)) + timedelta(minutes=self.minutes)

    @initialize(texts=st.lists(st.sampled_from(TEXTS), min_size=3, unique=True))
    def begin(self, texts: list[str]) -> None:
        for text in texts:
            self.offer(text, 0)
        self.run()

    @rule(text=st.sampled_from(TEXTS), session=st.integers(0, 3))
    def offer(self, text: str, session: int) -> None:
        day = day_after(self.day)
        source = observation(text, day=day, session=f"s{session}")
        if source["observation_id"] not in set(self.lake.read("observations", [day])["observation_id"]):
            put(self.lake, "observations", source)
            put(self.lake, "reflections", reflection(text, day=day, sources=[source["observation_id"]]))
        bring_up_to_date(ProposalsStage(self.workspace), self.lake, day)

    @rule(
        text=st.sampled_from([*TEXTS, None]),
        replaces=st.sampled_from([*TEXTS, *BY_HAND, None]),
        file=st.sampled_from(["MEMORY.md", "AGENTS.md"]),
        low_risk=st.booleans(),
    )
    def find_friction(self, text: str | None, replaces: str | None, file: str, low_risk: bool) -> None:
        day = day_after(self.day)
        number = self.lake.read("friction_clusters", [day]).height + 1
        wanted = {"adds": text, "replaces": replaces, "target_file": file, "low_risk": low_risk}
        put(self.lake, "friction_clusters", fixable(number, f"friction of {day}", day=day, **wanted))

    @rule()
    def write_into_memory(self) -> None:
        path = self.settings.memory_file
        if path.exists():
            self.written += 1
            path.write_text(path.read_text("utf-8") + "".join(f"- {line}\n" for line in BY_HAND), "utf-8")

    @rule(days=st.sampled_from([1, 3, 8]))
    def wait(self, days: int) -> None:
        self.day, self.minutes = self.day + days, 0

    @rule()
    def run(self) -> None:
        reconcile(self.workspace, self.now())

    @precondition(lambda self: self.settings.review_file.exists())
    @rule(which=st.integers(0, 9), hand=st.sampled_from(["x", "-", "delete", "edit", "?"]))
    def edit_review(self, which: int, hand: str) -> None:
        text = self.settings.review_file.read_text("utf-8", "replace")
        lines = [line for line in text.splitlines(keepends=True) if line.startswith("- [ ]")]
        if lines:
            line = lines[which % len(lines)]
            new = {"delete": "", "edit": line.replace("- [ ]", "- [x]").replace("Use", "Please use")}
            self.settings.review_file.write_text(text.replace(line, new.get(hand, line.replace("[ ]", f"[{hand}]"))))

    @precondition(lambda self: self.settings.review_file.exists())
    @rule(keep=st.integers(0, 400))
    def damage_review(self, keep: int) -> None:
        self.settings.review_file.write_bytes(self.settings.review_file.read_bytes()[:keep])

    @rule(which=st.integers(0, 9), decision=st.sampled_from([APPROVED, REJECTED]))
    def decide_at_the_command_line(self, which: int, decision: str) -> None:
        choice = sorted(self.made - set(self.ended)) if which else sorted(self.made)
        if not choice:
            return
        proposal_id = choice[which % len(choice)]
        try:
            decide(self.workspace, {proposal_id: decision}, self.now())
        except UnknownProposalError:
            assert self.ended[proposal_id] != decision

    @precondition(lambda self: self.settings.memory_file.exists())
    @rule(which=st.integers(0, 9))
    def remove_from_memory(self, which: int) -> None:
        lines = self.settings.memory_file.read_text("utf-8").splitlines(keepends=True)
        ours = [line for line in lines if "<!-- p-" in line or "<!-- f-" in line]
        if ours:
            lines.remove(ours[which % len(ours)])
            self.settings.memory_file.write_text("".join(lines), "utf-8")

    @invariant()
    def none_vanishes_and_an_end_is_for_ever(self) -> None:
        status = dict(ProposalLog(self.lake).frame.select("proposal_id", "status").iter_rows())
        assert self.made <= set(status)
        self.made = set(status)
        assert {p: status[p] for p in self.ended} == self.ended
        self.ended = {p: state for p, state in status.items() if state != PENDING}

    @invariant()
    def every_proposal_has_at_most_one_end(self) -> None:
        decisions = events(self.lake, "decided")
        assert decisions["proposal_id"].is_unique().all()
        assert events(self.lake, "promoted")["proposal_id"].is_unique().all()
        for row in decisions.filter(decisions["decision"] == EXPIRED).iter_rows(named=True):
            shown = events(self.lake, "shown").filter(proposal_id=row["proposal_id"])["happened_at"].min()
            assert row["happened_at"] - shown >= timedelta(days=7)

    @invariant()
    def memory_says_nothing_twice(self) -> None:
        path = self.settings.memory_file
        lines = lines_of(path.read_bytes() if path.exists() else None)
        ids = [line.proposal_id for line in lines if line.proposal_id]
        assert len(ids) == len(set(ids))

    @invariant()
    def the_reviewer_is_not_buried(self) -> None:
        shown = [is_fix(row["proposal_id"]) for row in on_display(self.workspace, ProposalLog(self.lake))]
        assert shown.count(False) <= LIMIT
        assert shown.count(True) <= LIMIT

    @invariant()
    def no_line_of_a_person_is_lost(self) -> None:
        path = self.settings.memory_file
        text = path.read_text("utf-8") if path.exists() else ""
        assert {line: text.count(line) >= self.written for line in BY_HAND} == dict.fromkeys(BY_HAND, True)

    @rule()
    def check(self) -> None:
        self.run()
        verdict = judge_integrity(self.lake, self.settings.memory_file)
        assert [o for o in verdict.offenders if not o.startswith("MEMORY.md has none")] == []
        text = self.settings.review_file.read_text("utf-8", "replace") if self.settings.review_file.exists() else ""
        waiting = set(ProposalLog(self.lake).frame.filter(status=PENDING)["proposal_id"])
        assert set(re.findall(r"^- \[ \] `([pf]-[\d-]+)`", text, re.MULTILINE)) <= waiting


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=times(0.15), stateful_step_count=20, suppress_health_check=list(HealthCheck))
