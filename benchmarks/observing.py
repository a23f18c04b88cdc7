"""How good the extractive observer is on labelled real sessions, beside simple extractors in the same run.

    python -m benchmarks.observing [LABELS_DIR | --strangers | --looked-at] [--answers ANSWERS_DIR [--model NAME]]

LABELS_DIR holds labels in the form of `../shared/gold`, whose `score.py` explains the figures; without it the gold
ones and those of `benchmarks/labels` are taken. The shipped weights were fitted on both (`weights.json` names them),
so there the figures are in-sample; `benchmarks/fit_observer.py` prints those that leave out the session that is scored.
`--strangers` takes ten sessions of people whom nothing was tuned on, `--looked-at` ten others that were looked at
(`benchmarks/strangers.py`).

The scorer cuts a session's observations at a tenth of what was said. Rows with `all` are without that cut: a model may
use more where little is said and much is done, and the column `budget` tells how much it did.

With `--answers` the language-model observer is scored too, from recorded answers (`recorded.py` tells the format);
where one is missing, its request is written down and no figure printed.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import FIXTURES, GOLD, MORE, parser
from benchmarks.labels import STRANGERS, is_looked_at, label_folder, restore
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Segment, WindowMessage
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.reading import parse_file

BASELINES = ("lead", "random", "longest", "cues")
CUT, UNCUT = 0.1, 1.0
FIGURES = ("recall", "recall_high", "high_as_high", "junk", "trap_rate", "budget", "pk", "high_obs")


@dataclass(frozen=True)
class Session:
    """A labelled session as one window."""

    file: str
    gold: dict[str, Any]
    said: tuple[WindowMessage, ...]
    lines: dict[str, int]
    """Line in the file of each message id."""


def sessions(labels: Path, fixtures: Path = FIXTURES) -> Iterator[Session]:
    for label in sorted(labels.glob("*.gold.json")):
        labelled = json.loads(label.read_text("utf-8"))
        messages = parse_file(fixtures / labelled["file"]).messages
        said = (
            WindowMessage(
                m.message_id,
                m.role,
                m.said_at,
                m.text,
                m.is_error,
                tuple(quoted_spans(m.text)) if m.role == "user" else (),
                m.tool_name,
            )
            for m in messages
        )
        yield Session(labelled["file"], labelled, tuple(said), {m.message_id: m.line for m in messages})


def rows(session: Session, segments: Iterable[Segment]) -> Iterator[dict[str, Any]]:
    """Segments and facts in the scorer's format."""
    texts = {m.message_id: m.text for m in session.said}
    for segment in segments:
        yield {"file": session.file, "segment_start_line": session.lines[segment.first_message_id]}
        for fact in segment.facts:
            evidence = [texts[s.message_id][s.start : s.end] for s in fact.evidence]
            yield {"file": session.file, "priority": fact.priority, "text": fact.text, "evidence": evidence}


def score(
    labels: Path, observations: Iterable[dict[str, Any]] | str, fixtures: Path = FIXTURES, budget: float = CUT
) -> dict[str, dict[str, Any]]:
    """The scorer's figures by file, and as TOTAL; `budget` is the share of what was said that counts."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        lines = [observations] if isinstance(observations, str) else (json.dumps(row) for row in observations)
        file.write("\n".join(lines))
        file.flush()
        command = [sys.executable, str(GOLD / "score.py"), file.name, "--json"]
        command += ["--fixtures", str(fixtures), "--gold", str(labels), "--budget", str(budget)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, dict[str, Any]] = json.loads(answer.stdout)
    return figures


def baseline(labels: Path, kind: str, gold: Path = GOLD) -> str:
    """The simple extractor's observations; it reads the sessions in `fixtures` beside the folder `gold`."""
    command = [sys.executable, str(gold / "baselines.py"), kind, str(labels)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def heading() -> str:
    return f"{'':40}" + "".join(f"{name:>13}" for name in FIGURES)


def line(name: str, figures: dict[str, Any]) -> str:
    return f"{name[:40]:40}" + "".join(f"{figures[figure]!s:>13}" for figure in FIGURES)


def report(labels: Path, name: str, files: Path) -> None:
    labelled = list(sessions(labels, files))
    # where the scorer cuts at a tenth of what was said, nothing is granted to short windows
    for title, observer, budget in (
        ("", ExtractiveObserver(min_budget=0), CUT),
        (", all", ExtractiveObserver(), UNCUT),
    ):
        found = [row for session in labelled for row in rows(session, observer.observe(session.said))]
        print(line(f"{name}: {observer.name}{title}", score(labels, found, files, budget)["TOTAL"]))
    for kind in BASELINES if files == FIXTURES else ():  # they read no others
        print(line(f"{name}: baseline {kind}", score(labels, baseline(labels, kind))["TOTAL"]))


def main() -> None:
    options = parser("observing", __doc__)
    options.add_argument("labels", type=Path, nargs="?")
    for kind in ("--strangers", "--looked-at"):
        options.add_argument(kind, action="store_const", const=kind[2:], dest="of")
    options.add_argument("--answers", type=Path, help="recorded answers of a language model, see recorded.py")
    options.add_argument("--model", default="recorded:any", help="as OBSERVER_MODEL names it; it is part of the keys")
    asked = options.parse_args()
    if not (GOLD / "score.py").exists():
        sys.exit(f"There is no score.py in {GOLD}.")
    print(heading())
    with contextlib.ExitStack() as stack:
        if asked.labels:
            scored = [(asked.labels, asked.labels.name, FIXTURES)]
        elif asked.of:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            restore(folder, MORE, STRANGERS, of=lambda name: is_looked_at(name) == (asked.of == "looked-at"))
            scored = [(folder, asked.of, MORE)]
        else:
            own = stack.enter_context(label_folder(with_gold=False))
            scored = [(GOLD / "labels", "gold", FIXTURES), (own, "labels", FIXTURES)]
        for labels, name, files in scored:
            report(labels, name, files)
            if asked.answers:
                from benchmarks.recorded import report as report_recorded

                report_recorded(labels, asked.answers, asked.model, files)


if __name__ == "__main__":
    main()
