"""How good the extractive observer is on labelled real sessions, beside simple extractors in the same run.

    python benchmarks/observing.py [GOLD_DIR] [FIXTURES_DIR]

GOLD_DIR (default ../shared/gold) holds the labels, `score.py`, which explains the figures, and `baselines.py`.
The observer's cues and weights were set by hand with these eight sessions in view, and none was fitted; expect
less on others.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_pipeline.observations.extractive import ExtractiveObserver
from memory_pipeline.observations.observer import Said
from memory_pipeline.sessions.model import Message
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.reading import parse_file

SHARED = Path(__file__).resolve().parents[2] / "shared"
BASELINES = ("lead", "random", "longest", "cues")
FIGURES = ("recall", "recall_high", "high_as_high", "junk", "trap_rate", "budget", "pk", "high_obs")


def observed(gold: Path, fixtures: Path) -> Iterator[dict[str, Any]]:
    """What the observer makes of every labelled session, in the scorer's format."""
    observer = ExtractiveObserver()
    for label in sorted((gold / "labels").glob("*.gold.json")):
        file = json.loads(label.read_text("utf-8"))["file"]
        messages = parse_file(fixtures / file).messages
        by_id = {m.message_id: m for m in messages}
        said = [Said(m.message_id, m.role, m.said_at, m.text, m.is_error, _quoted(m)) for m in messages]
        for segment in observer.observe(said):
            yield {"file": file, "segment_start_line": by_id[segment.first_message_id].line}
            for fact in segment.facts:
                evidence = [by_id[s.message_id].text[s.start : s.end] for s in fact.evidence]
                yield {"file": file, "priority": fact.priority, "text": fact.text, "evidence": evidence}


def _quoted(message: Message) -> tuple[tuple[int, int], ...]:
    return tuple(quoted_spans(message.text)) if message.role == "user" else ()


def score(gold: Path, fixtures: Path, observations: str) -> dict[str, Any]:
    """The scorer's totals for these lines of observations."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(observations)
        file.flush()
        command = [sys.executable, str(gold / "score.py"), file.name, "--json", "--fixtures", str(fixtures)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    total: dict[str, Any] = json.loads(answer.stdout)["TOTAL"]
    return total


def main() -> None:
    gold = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "gold"
    fixtures = Path(sys.argv[2]) if len(sys.argv) > 2 else SHARED / "fixtures"
    if not (gold / "score.py").exists():
        sys.exit(f"There are no gold labels in {gold}; name their directory.")
    print(f"{'':24}" + "".join(f"{name:>14}" for name in FIGURES))
    systems = {"extractive observer": "\n".join(json.dumps(row) for row in observed(gold, fixtures))}
    for kind in BASELINES:
        command = [sys.executable, str(gold / "baselines.py"), kind]
        systems[f"baseline: {kind}"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, observations in systems.items():
        total = score(gold, fixtures, observations)
        print(f"{name:24}" + "".join(f"{total[figure]!s:>14}" for figure in FIGURES))


if __name__ == "__main__":
    main()
