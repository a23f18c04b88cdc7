"""Conversations of sde-bench without a model, through `memory run`: what is high, observed, offered and found again.

    python -m benchmarks.sde [--workspace DIR] [--list]

The visible half in `../shared/bench/data/sde`: 17 tasks whose conversations state a decision, three of them amended in
a later conversation, and 70 conversations that decide nothing. Each becomes a session of Claude Code, one an hour, the
amending ones a month after what they amend. `--workspace` keeps what was made. Rows: conversations that decide nothing
and have a high observation; turns that state a decision and are in an observation, or in a high one; lines offered, and
how many of them are from conversations that decide; of the amended tasks, how often the amending conversation is the
first that a search for the bug report finds.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import BENCH, ROOT, parser, run_everything
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.search import Searcher
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH

DATA = BENCH / "data" / "sde" / "visible.json"
FIRST = datetime(2026, 3, 2, 8, tzinfo=UTC)
A_DAY, MONTH = 8, timedelta(days=30)
"""Conversations a day, and the time after which one is amended."""


@dataclass(frozen=True)
class Conversation:
    session: str
    project: str
    turns: list[dict[str, str]]
    at: datetime
    decided: int | None = None
    """The turn that states the decision."""

    def records(self) -> Iterator[dict[str, Any]]:
        parent = None
        for number, turn in enumerate(self.turns):
            uuid = f"{self.session}-{number}"
            role = turn["role"]
            content = turn["text"] if role == "user" else [{"type": "text", "text": turn["text"]}]
            yield {
                "type": role,
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": self.session,
                "timestamp": (self.at + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
                "cwd": f"/src/{self.project}",
                "version": "2.0.0",
                "message": {"role": role, "content": content},
            }
            parent = uuid


def conversations(data: dict[str, Any]) -> list[Conversation]:
    found = []
    for number, task in enumerate(data["tasks"]):
        project = task["id"].split("-")[1]
        at = FIRST + timedelta(days=number // A_DAY, hours=number % A_DAY)
        for part, chat in enumerate(task["chats"]):
            decided = task["decided"][part] if part < len(task["decided"]) else None
            found.append(Conversation(f"{task['id']}-{part}", project, chat, at + part * MONTH, decided))
    for number, decoy in enumerate(data["decoys"], len(data["tasks"])):
        at = FIRST + timedelta(days=number // A_DAY, hours=number % A_DAY)
        found.append(Conversation(f"decoy-{number}", "boltons", decoy["turns"], at))
    return found


def write(found: list[Conversation], folder: Path) -> None:
    for one in found:
        target = folder / f"-src-{one.project}" / f"{one.session}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(record) + "\n" for record in one.records()), "utf-8")


def report(data: dict[str, Any], found: list[Conversation], workspace: Path, *, names: bool) -> None:
    lake = Lake(Settings(workspace=workspace).lake_dir)
    observed = lake.read("observations").to_dicts()
    offered = lake.read("proposals").to_dicts()
    times = dict(lake.read("messages").select("message_id", "said_at").iter_rows())
    high = {row["session_id"] for row in observed if row["priority"] == HIGH}
    decoys = [one for one in found if one.session.startswith("decoy")]
    deciding = [one for one in found if one.decided is not None]
    print(f"decoys with a high: {sum(one.session in high for one in decoys)} of {len(decoys)}")
    for title, rows in (("observed", observed), ("high", [row for row in observed if row["priority"] == HIGH])):
        said = {(row["session_id"], times[span["message_id"]]) for row in rows for span in row["evidence"]}
        count = sum((one.session, one.at + timedelta(minutes=one.decided or 0)) in said for one in deciding)
        print(f"deciding turns {title}: {count} of {len(deciding)}")
    good = [row for row in offered if any(not s.startswith("decoy") for s in row["session_ids"])]
    print(f"offered: {len(offered)}, {len(good)} from conversations that decide")
    amended = [task for task in data["tasks"] if len(task["chats"]) > 1]
    searcher = Searcher(Settings(workspace=workspace))
    first = 0
    for task in amended:
        result = searcher.search(task["bug_report"])
        first += bool(result.sessions) and result.sessions[0] == f"{task['id']}-1"
        if names:
            print(task["id"], result.sessions[:4])
    print(f"newest amendment first in search: {first} of {len(amended)}")
    for row in offered if names else ():
        print(f"    {row['session_ids'][0]}: {row['text']}")


def main() -> None:
    options = parser("sde", __doc__)
    options.add_argument("--workspace", type=Path, help="where to keep what is made; it is used again")
    options.add_argument("--list", action="store_true", help="print what is offered and found")
    asked = options.parse_args()
    data = json.loads(DATA.read_text("utf-8"))
    found = conversations(data)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.workspace or Path(temporary)
        if not (folder / "workspace").exists():
            write(found, folder / "sessions")
            run_everything(ROOT, [folder / "sessions"], folder / "workspace", folder / "home")
        report(data, found, folder / "workspace", names=asked.list)


if __name__ == "__main__":
    main()
