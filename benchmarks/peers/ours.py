"""Our own system: `memory run --all` over the sessions as files of pi, then the search that `memory search` does."""

import json
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from benchmarks.common import memory
from benchmarks.peers.system import Collection, Outcome, Ranking, best_first, bytes_below, said_at, with_speaker
from memory_pipeline import __version__
from memory_pipeline.recall.search import Searcher
from memory_pipeline.settings import Settings

RESULTS = 50
"""As many as the others are asked for; ours gives 10 by default."""


class Ours:
    """Without a language model. The run also observes, reflects and proposes, which the others do not do."""

    def __init__(self, folder: Path) -> None:
        """Needs no venv."""

    def label(self) -> str:
        return f"memory_pipeline {__version__}"

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        sessions, workspace = folder / "sessions", folder / "workspace"
        self._write(collection, sessions)
        start = time.perf_counter()
        done = memory(["run", "--all"], sessions, workspace)
        outcome = Outcome(indexing=time.perf_counter() - start)
        if done.returncode:
            raise RuntimeError(f"memory run failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
        outcome.index_bytes = bytes_below(workspace / "index")
        settings = Settings(workspace=workspace, timezone="UTC", default_session_dirs=False)
        with closing(Searcher(settings)) as ask:
            for at, question in enumerate([collection.questions[0], *collection.questions]):
                start = time.perf_counter()
                found = ask.search(question["query"], limit=RESULTS)
                seconds = time.perf_counter() - start
                if found.notes:
                    raise RuntimeError(f"memory search answers {found.notes}")
                if at:  # the first one loads the model
                    ranked = best_first(found.sessions)
                    outcome.rankings.append(Ranking("search", question["query_id"], ranked, seconds))
        for question in collection.questions[:cold]:
            start = time.perf_counter()
            asked = memory(["search", question["query"]], sessions, workspace)
            outcome.cold.append(time.perf_counter() - start)
            if asked.returncode:
                raise RuntimeError(f"memory search failed:\n{asked.stderr[-2000:]}")
        return outcome

    @staticmethod
    def _write(collection: Collection, sessions: Path) -> None:
        sessions.mkdir()
        for name, messages in collection.sessions().items():
            began = said_at(messages[0]["said_at"])
            header = {"type": "session", "version": 3, "id": name, "timestamp": f"{began:%Y-%m-%dT%H:%M:%S.000Z}"}
            lines: list[dict[str, object]] = [header | {"cwd": "/src/project"}]
            people = list(dict.fromkeys(message["speaker"] for message in messages))
            for at, message in enumerate(messages):
                moment = said_at(message["said_at"])
                if moment == began:  # only the session's time is known
                    moment += timedelta(seconds=at)
                role = message["speaker"]
                if role not in ("user", "assistant"):
                    role = ("user", "assistant")[people.index(role) % 2]
                content = {"role": role, "content": [{"type": "text", "text": with_speaker(message)}]}
                lines.append(
                    {
                        "type": "message",
                        "id": f"{at:08x}",
                        "parentId": f"{at - 1:08x}" if at else None,
                        "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.000Z}",
                        "message": content,
                    }
                )
            (sessions / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf8")
