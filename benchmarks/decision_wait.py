"""How long a decision in REVIEW.md takes to reach MEMORY.md, alone and during a backfill from the UI.

    python -m benchmarks.decision_wait [--decisions N] [--days N]

A workspace of the bundled examples, with Dagster's UI, daemon and sensors running as `memory ui` starts them. A line of
REVIEW.md is marked `[x]` and saved, and the seconds are counted until it stands in MEMORY.md: first with nothing else
to do, then while a backfill of so many days of recorded sessions, launched as the UI launches one, is under way. The
sensor looks every 30 seconds; the goal is a minute.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.common import EXAMPLES, FIXTURES, parser
from benchmarks.simulated_year import Year, ui_of

GOAL, PATIENCE = 60.0, 600.0
_PENDING = re.compile(r"^- \[ \] `(p-[\d-]+)`", re.MULTILINE)
_BACKFILL = """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_LOCATIONS = """{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"""
_RUNS = "{ runsOrError(limit: 50) { ... on Runs { results { jobName status tags { key value } } } } }"


def main() -> None:
    options = parser("decision_wait", __doc__)
    options.add_argument("--decisions", type=int, default=3)
    options.add_argument("--days", type=int, default=30)
    chosen = options.parse_args()
    if not FIXTURES.is_dir():
        sys.exit(f"Not run: the recorded sessions of {FIXTURES} are missing.")
    with tempfile.TemporaryDirectory() as folder:
        year = Year(Path(folder), sorted(FIXTURES.rglob("*.jsonl")), chosen.days, 3)
        year.sessions.symlink_to(EXAMPLES)
        year.told("the examples are read", ["run", "--all"])
        year.sessions.unlink()
        first, last = f"{year.day(0)}", f"{year.day(chosen.days - 1)}"
        with ui_of(year) as url:
            time.sleep(PAUSE)
            alone = [waited(year.workspace) for _ in range(chosen.decisions)]
            written = year.write(0, chosen.days - 1)
            print(f"  backfill of {chosen.days} days, {written:,.0f} MB, from {first} to {last}", flush=True)
            launch(url, year)
            while not is_under_way(url):
                time.sleep(0.5)
            meanwhile = [waited(year.workspace) for _ in range(chosen.decisions) if is_under_way(url)]
    for name, seconds in (("nothing else to do", alone), ("during the backfill", meanwhile)):
        told = ", ".join(f"{one:.0f}" for one in seconds) or "over before"
        print(f"  from [x] to MEMORY.md, {name:<24} {told} s (goal {GOAL:.0f})")
    sys.exit(0 if meanwhile and max(meanwhile) <= GOAL else 1)


PAUSE = 5.0
"""Seconds in which the daemon starts."""


def waited(workspace: Path) -> float:
    """Seconds until the first pending line, now approved, is promoted."""
    review = workspace / "REVIEW.md"
    text = review.read_text("utf-8")
    found = _PENDING.search(text)
    if not found:
        sys.exit(f"No line of {review} is pending any more.")
    review.write_text(text.replace(found[0], found[0].replace("[ ]", "[x]")), "utf-8")
    began = time.monotonic()
    memory = workspace / "MEMORY.md"
    while not memory.exists() or found[1] not in memory.read_text("utf-8"):
        if time.monotonic() - began > PATIENCE:
            sys.exit(f"{found[1]} is not in MEMORY.md after {PATIENCE:.0f} seconds.")
        time.sleep(0.2)
    return time.monotonic() - began


def launch(url: str, year: Year) -> None:
    """A backfill of `day_job` over all days, as the button of its page launches it."""
    nodes = asked(url, _LOCATIONS)["repositoriesOrError"]["nodes"]
    selector = {"repositoryLocationName": nodes[0]["location"]["name"], "repositoryName": nodes[0]["name"]}
    params = {
        "selector": {"partitionSetName": "day_job_partition_set", "repositorySelector": selector},
        "partitionNames": [f"{year.day(number)}" for number in year.days],
        "fromFailure": False,
    }
    answer = asked(url, _BACKFILL, params=params)["launchPartitionBackfill"]
    if "backfillId" not in answer:
        sys.exit(f"The backfill was not launched: {answer}")


def is_under_way(url: str) -> bool:
    """Whether a run over days has begun and not ended."""
    runs = asked(url, _RUNS)["runsOrError"]["results"]
    return any(run["jobName"] == "day_job" and run["status"] == "STARTED" for run in runs)


def asked(url: str, query: str, **variables: Any) -> dict[str, Any]:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: dict[str, Any] = json.load(answer)
    if told.get("errors"):
        sys.exit(f"The UI says: {told['errors'][0]['message']}")
    data: dict[str, Any] = told["data"]
    return data


if __name__ == "__main__":
    main()
