"""Two months of one project through `memory run` with recorded careful answers: what is offered first, and a reader's
marks.

    python -m benchmarks.two_months [--kept DIR]

Sixteen sessions of entireio/cli, 2026-01-05 to 2026-02-09, from `../shared/more-sessions`; its larger ones are left
out. A server on loopback answers for the model. `two_months/observed.json` has a careful reader's answer to each part
of a session, by its day and its first message; `two_months/lines.json` has the lines that the same reader reflects,
each with the beginnings of the observations that it rests on. Both are in the reader's words; the sessions are not
quoted. A request without an answer fails the run, which then says so.

It prints the first twenty offered lines as MEMORY.md would have them, each with the mark and the reason of
`two_months/marks.toml`, "new wording" where nobody has marked it, and the sums beside those of the answers that the
prompts before 2026-11-28 asked for. The marks are of one reader who took the place of a maintainer.
"""

import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import MORE, memory, parser
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.scope import with_note
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import EMOJI, LOW, RANK
from memory_pipeline_tests.llm.openai_server import Asked, Fail, Turn, openai_server

FOLDER = Path(__file__).parent / "two_months"
SESSIONS = (
    *("4555072a", "ccc58457", "cab865ac", "04cd0da1", "85cc202e", "c26d2153", "163396cf", "cc432c40", "d64b50bb"),
    *("1c38adc0", "60b38d1e", "abc0b1d7", "768de5d6", "030e1e67", "37a27d31", "e5fcdc73"),
)
"""The beginnings of their ids."""
FIRST = 20
"""As many as REVIEW.md shows."""
MARKS = ("keep", "edit", "drop")
_DAY = re.compile(r"It is \w+ (\d{4}-\d\d-\d\d)")
_FIRST_MESSAGE = re.compile(r"<transcript-\w+>\n\[(#\d+ \d\d:\d\d)")
_OBSERVATION = re.compile(
    r"^o(?P<number>\d+) (?P<mark>\S+) (?P<kind>\w+), [^:]*: (?P<doubtful>\(doubtful\) )?(?P<text>.*)$", re.M
)


class CarefulReader:
    """The recorded answers in a folder to the observer's and the reflector's requests."""

    def __init__(self, folder: Path) -> None:
        self._observed = json.loads((folder / "observed.json").read_text("utf-8"))
        self._lines: list[dict[str, Any]] = json.loads((folder / "lines.json").read_text("utf-8"))
        self.missing: list[str] = []

    def __call__(self, asked: Asked) -> Turn:
        day, message = _DAY.search(asked.prompt), _FIRST_MESSAGE.search(asked.prompt)
        if day and message:
            part = f"{day[1]} {message[1]}"
            if part not in self._observed:
                self.missing.append(part)
                return Fail(503, f"no answer is recorded for {part}")
            return json.dumps(self._observed[part])
        return json.dumps({"lines": self._reflected(asked.prompt), "known": [], "summary": ""})

    def _reflected(self, prompt: str) -> list[dict[str, Any]]:
        """The recorded lines that rest on the observations shown, and the state of the work."""
        shown = list(_OBSERVATION.finditer(prompt))
        priorities = {emoji: priority for priority, emoji in EMOJI.items()}
        found = []
        for line in self._lines:
            sources = [o for start in line["rests_on"] for o in shown if o["text"].startswith(start)]
            if any(not o["doubtful"] for o in sources):
                best = min((priorities[o["mark"]] for o in sources), key=RANK.__getitem__)
                found.append(
                    line | {"priority": max(line["priority"], best, key=RANK.__getitem__)} | _based_on(sources)
                )
        for o in shown:
            priority = priorities[o["mark"]]
            if o["kind"] == "progress" and priority != LOW and not o["doubtful"]:
                head: dict[str, Any] = {
                    "priority": priority,
                    "section": "none",
                    "kind": "progress",
                    "tags": [],
                    "text": o["text"],
                }
                found.append(head | _based_on([o]))
        found.sort(key=lambda line: RANK[line["priority"]])
        return [{name: value for name, value in line.items() if name != "rests_on"} for line in found]


def _based_on(sources: list[re.Match[str]]) -> dict[str, list[Any]]:
    return {"observations": [int(o["number"]) for o in sources], "replaces": [], "contradicts": []}


def play(folder: Path) -> list[tuple[str, str]]:
    """The first offered lines, best first: as MEMORY.md has them, and their words alone."""
    sessions = folder / "sessions" / "claude"
    sessions.mkdir(parents=True)
    for session in SESSIONS:
        for file in (MORE / "claude").glob(f"entireio-cli__{session}*.jsonl"):
            shutil.copy(file, sessions)
    requests = run_with(CarefulReader(FOLDER), sessions.parent, folder / "workspace")
    settings = Settings(workspace=folder / "workspace")
    pending = ProposalLog(Lake.from_settings(settings)).pending()
    print(f"{len(SESSIONS)} sessions, {requests} requests, {len(pending)} lines offered\n")
    return [(f"## {p['section']}: {with_note(p['text'], p['projects'])}", p["text"]) for p in pending[:FIRST]]


def run_with(reader: CarefulReader, sessions: Path, workspace: Path) -> int:
    """`memory run --all` with the reader in place of a model; returns the number of requests. Ends the program if one
    had no answer."""
    with openai_server(reader) as server:
        models = {
            f"{stage}_{name}": value
            for stage in ("OBSERVER", "REFLECTOR")
            for name, value in (("MODEL", "openai:careful"), ("BASE_URL", server.url), ("PRICE", "0/0"))
        }
        limits = {"MEMORY_DAILY_BUDGET_TOKENS": "100000000", "MEMORY_MODEL_RETRIES": "0", "OPENAI_API_KEY": "none"}
        done = memory(["run", "--all"], sessions, workspace, **models, **limits)
        requests = len(server.requests)
    if reader.missing or done.returncode:
        sys.exit(
            f"The run did not finish; without an answer: {reader.missing}\n{done.stdout[-2000:]}{done.stderr[-500:]}"
        )
    return requests


def sums(marks: Counter[str]) -> str:
    return ", ".join(f"{name} {marks[name]}" for name in (*MARKS, *(("new wording",) if marks["new wording"] else ())))


def main() -> None:
    options = parser("two_months", __doc__)
    options.add_argument("--kept", type=Path, metavar="DIR", help="an empty folder in which the workspace stays")
    kept: Path | None = options.parse_args().kept
    if not MORE.exists():
        print(f"There is no {MORE}: nothing to play.")
        return
    marks = tomllib.loads((FOLDER / "marks.toml").read_text("utf-8"))
    known = {each["line"]: each for each in marks["after"]}
    with tempfile.TemporaryDirectory() as temporary:
        offered = play(kept or Path(temporary))
    given: Counter[str] = Counter()
    for number, (line, text) in enumerate(offered, 1):
        mark = known.get(text, {"mark": "new wording", "reason": "nobody has marked it"})
        given[mark["mark"]] += 1
        print(f"{number:>2}. {line}\n    {mark['mark']}: {mark['reason']}")
    print(f"\nfirst {len(offered)}: {sums(given)}")
    print(f"before the prompts asked for what to do: {sums(Counter(each['mark'] for each in marks['before']))}")


if __name__ == "__main__":
    main()
