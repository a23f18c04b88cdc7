"""How good the extractive observer is on labelled real sessions, beside simple extractors in the same run.

    python benchmarks/observing.py [GOLD_DIR] [FIXTURES_DIR]

GOLD_DIR (default ../shared/gold) holds the labels, `score.py`, which explains the figures, and `baselines.py`.
On the eight sessions that the shipped weights were fitted on (`weights.json` names them) the figures are in-sample;
`benchmarks/fit_observer.py` prints those that leave out the session that is scored. On other sessions they are fair.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipeline.observations.extractive import ExtractiveObserver
from memory_pipeline.observations.observer import Said, Segment
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.text.encoder import Encoder

SHARED = Path(__file__).resolve().parents[2] / "shared"
BASELINES = ("lead", "random", "longest", "cues")
FIGURES = ("recall", "recall_high", "high_as_high", "junk", "trap_rate", "budget", "pk", "high_obs")


@dataclass(frozen=True)
class Session:
    """A labelled session as one window."""

    file: str
    gold: dict[str, Any]
    said: tuple[Said, ...]
    lines: dict[str, int]
    """Line in the file of each message id."""


def sessions(gold: Path, fixtures: Path) -> Iterator[Session]:
    for label in sorted((gold / "labels").glob("*.gold.json")):
        labelled = json.loads(label.read_text("utf-8"))
        messages = parse_file(fixtures / labelled["file"]).messages
        said = (
            Said(
                m.message_id,
                m.role,
                m.said_at,
                m.text,
                m.is_error,
                tuple(quoted_spans(m.text)) if m.role == "user" else (),
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


def score(gold: Path, fixtures: Path, observations: Iterable[dict[str, Any]] | str) -> dict[str, dict[str, Any]]:
    """The scorer's figures by file, and as TOTAL."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        lines = [observations] if isinstance(observations, str) else (json.dumps(row) for row in observations)
        file.write("\n".join(lines))
        file.flush()
        command = [sys.executable, str(gold / "score.py"), file.name, "--json"]
        command += ["--fixtures", str(fixtures), "--gold", str(gold / "labels")]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, dict[str, Any]] = json.loads(answer.stdout)
    return figures


def baseline(gold: Path, kind: str) -> str:
    command = [sys.executable, str(gold / "baselines.py"), kind, str(gold / "labels")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def heading() -> str:
    return f"{'':40}" + "".join(f"{name:>13}" for name in FIGURES)


def line(name: str, figures: dict[str, Any]) -> str:
    return f"{name[:40]:40}" + "".join(f"{figures[figure]!s:>13}" for figure in FIGURES)


def main() -> None:
    gold = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "gold"
    fixtures = Path(sys.argv[2]) if len(sys.argv) > 2 else SHARED / "fixtures"
    if not (gold / "score.py").exists():
        sys.exit(f"There are no gold labels in {gold}; name their directory.")
    labelled = list(sessions(gold, fixtures))
    # the scorer cuts at a tenth of what was said, so nothing is granted to short windows
    observers = [ExtractiveObserver(min_budget=0), ExtractiveObserver(encoder=Encoder(), min_budget=0)]
    print(heading())
    for observer in observers:
        found = [row for session in labelled for row in rows(session, observer.observe(session.said))]
        print(line(observer.name, score(gold, fixtures, found)["TOTAL"]))
    for kind in BASELINES:
        print(line(f"baseline: {kind}", score(gold, fixtures, baseline(gold, kind))["TOTAL"]))


if __name__ == "__main__":
    main()
