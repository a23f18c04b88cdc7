"""What happens in a chain of runs, and what a person does in between."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from memory_pipeline.markdown import safe_write
from memory_pipeline.proposals import events, review
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import OpenLog, ProposalLog
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import Lake, at, observation, put, say, workspace

STEPS = ("reflect", "propose", "review", "promote")
NO_MODEL = "not-on-this-machine"
MEMORY = "# Memory\n\nBy hand, above.\n\n## Hard Rules\n- Be kind  \n\n## Notes\nBy hand, below.\r\n"
SAID = (
    ("Use uv for packages.", "Never deploy on a Friday.", "Indent Makefiles with tabs.", "Store every time in UTC."),
    ("Use uv for packages.", "Run ruff before each commit.", "Name branches after their ticket."),
    ("Never push to main.", "Write dates as ISO 8601.", "Indent Makefiles with spaces instead of tabs."),
    ("Use poetry instead of uv for packages.", "Keep fixtures below one megabyte.", "Use British spelling."),
    ("Never deploy on a Friday afternoon.", "Answer in English.", "Log to stderr, never to stdout."),
    ("Use hatch, not poetry, for packages.", "Squash before merging.", "Every endpoint has a timeout."),
)
"""Lines of a person that stand beside what a workspace has, in the order of its days: some are said again, some take
the place of others."""
SAID_LATE = "Review every migration with a second person."
"""Of a session file that grew after its day was done."""

Hand = Callable[[Settings, Lake], None]


@dataclass(frozen=True)
class Run:
    """What one run does, at which time by its clock, and what a person did before."""

    days: tuple[date, ...]
    now: datetime
    hand: Hand


def workspace_of(folder: Path) -> tuple[Settings, Lake]:
    return workspace(folder, pending_limit=8, embedding_model=NO_MODEL)


def runs_over(days: Sequence[date]) -> list[Run]:
    """Four runs: over the first half of the days, the next morning, over a day again that grew, and weeks later, with
    a look at REVIEW.md on each morning of the week before."""
    half = len(days) // 2
    first, second, third, last = days[:half], days[half : half + 1], days[half : half + 2], days[half + 2 :]
    return [
        Run(tuple(first), _morning(first[-1]), lambda settings, lake: None),
        Run(tuple(second), _morning(second[-1]), marks("xx-xe")),
        Run(tuple(third), _morning(third[-1]), _grown(second[0])),
        Run(tuple(last), max(_morning(last[-1]), _morning(third[-1]) + timedelta(days=8)), _week(_morning(third[-1]))),
    ]


def _morning(day: date) -> datetime:
    """When the day that ended is reflected on."""
    return at("06:00", day + timedelta(days=1))


def prepare(folder: Path, days: Sequence[date]) -> None:
    settings, lake = workspace_of(folder)
    for position, (day, texts) in enumerate(zip(_spread(days), SAID, strict=True)):
        for number, text in enumerate(texts):
            _say(lake, day, f"own-{position}-{number}", f"{9 + number:02}:30", text)
    workspace_salt(settings)  # random, so it must be the same for all
    settings.memory_file.write_bytes(MEMORY.encode())
    for log in sorted({settings.daily_log(day) for run in runs_over(days) for day in (*run.days, run.now.date())}):
        log.parent.mkdir(exist_ok=True)
        log.write_text("# My day\n\nBought milk.\n\n" + (log.read_text("utf-8") if log.exists() else ""), "utf-8")


def _spread(days: Sequence[date]) -> list[date]:
    """As many of the days as `SAID` has."""
    return [days[number * len(days) // len(SAID)] for number in range(len(SAID))]


def _say(lake: Lake, day: date, session: str, clock: str, text: str) -> None:
    say(lake, session, f"user: {text}", day=day, clock=clock)
    put(lake, "observations", observation(text, day=day, session=session, clock=clock))


def marks(hands: str) -> Hand:
    """A person goes through REVIEW.md: x approves, - rejects, e approves another text, d deletes, a space leaves it."""

    def mark(settings: Settings, lake: Lake) -> None:
        lines, number = list[str](), 0
        for line in settings.review_file.read_text("utf-8").splitlines(keepends=True):
            if line.startswith("- [ ]"):
                hand = "x" if "for packages" in line else hands[number % len(hands)]
                number += 1
                if hand == "d":
                    continue
                edited = line.rstrip("\n") + " As I say.\n" if hand == "e" else line
                line = edited.replace("[ ]", f"[{'x' if hand == 'e' else hand}]", 1)
            lines.append(line)
        settings.review_file.write_text("".join(lines) + "\nA note of mine.\n", "utf-8")

    return mark


def _week(last: datetime) -> Hand:
    """Six days on which the pipeline shows what is pending and nobody decides; what came last ends in the run then."""

    def hand(settings: Settings, lake: Lake) -> None:
        for passed in range(1, 7):
            reconcile(Workspace(settings, lake), last + timedelta(days=passed))
        marks("x e d")(settings, lake)

    return hand


def _grown(day: date) -> Hand:
    """A person writes one line into MEMORY.md themselves and approves it too; a session of a day that is done grew."""

    def hand(settings: Settings, lake: Lake) -> None:
        _say(lake, day, "late", "15:30", SAID_LATE)
        text = settings.review_file.read_text("utf-8")
        mine = next(line for line in re.findall(r"- \[ \] `p-[\d-]+` (.*)", text) if "for packages" not in line)
        memory = settings.memory_file.read_bytes()
        settings.memory_file.write_bytes(memory.replace(b"- Be kind  \n", b"- Be kind  \n* %s\n" % mine.encode()))
        marks("x x -d")(settings, lake)

    return hand


def carry_out(run: Run, folder: Path, plain: bool = False, told: mmap.mmap | None = None) -> None:
    """What the assets do, in their order."""
    settings, lake = workspace_of(folder)

    def step(name: str) -> None:
        if told:
            told[0] = STEPS.index(name)

    if plain:
        write_in_place()
    step("reflect")
    reflections = ReflectionsStage.from_workspace(Workspace(settings, lake))
    for day in run.days:
        bring_up_to_date(reflections, lake, day)
    step("propose")
    proposals = ProposalsStage(Workspace(settings, lake))
    for day in run.days:
        bring_up_to_date(proposals, lake, day)
    step("review")
    promote = review.promote

    def promoting(workspace: Workspace, log: OpenLog, now: datetime) -> list[str]:
        step("promote")
        return promote(workspace, log, now)

    with patch.object(review, "promote", promoting):
        reconcile(Workspace(settings, lake), run.now)


def judge(folder: Path) -> None:
    """The chain is worth killing: everything that can become of a proposal did, once each."""
    settings, lake = workspace_of(folder)
    verdict = judge_integrity(lake, settings.memory_file)
    assert verdict.passed, verdict.offenders
    decided = set(ProposalLog(lake).events("decided")["decision"])
    assert decided == {"approved", "rejected", "expired", "invalid", "superseded"}, decided
    memory = settings.memory_file.read_bytes()
    assert b"~~" in memory, "no line was struck through"
    assert b" As I say." in memory, "no text was edited"
    assert b"By hand, below.\r\n" in memory


def write_in_place() -> None:
    """The baseline, in this process: write a user's files as many programs do."""
    safe_write.write_atomically = review.write_atomically = events.write_atomically = _write_plainly  # type: ignore[attr-defined]


def _write_plainly(path: Path, data: bytes, *, expected: bytes | None, backups: Path | None) -> bool:
    if path.exists():
        if (old := path.read_bytes()) == data:
            return False
        if backups:
            safe_write._back_up(path.name, old, backups)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True
