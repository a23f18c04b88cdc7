"""MemPalace: sessions mined as conversations by its command, asked through the search that its MCP server calls."""

import json
import time
from pathlib import Path

from benchmarks.peers import minilm
from benchmarks.peers.system import Collection, Outcome, ask, bytes_below, call, environment, said_at, venv, version_of

PACKAGE = "mempalace"
SCRIPT = Path(__file__).with_name("ask_mempalace.py")


class MemPalace:
    """Its two documented modes: `vector`, the default, and `union`, which adds candidates by BM25.

    A dialogue of user and assistant is a transcript of Claude Code, one between two people an export of Slack: the
    formats of each that its `mine --mode convos` reads. Its default model is MiniLM as ONNX from chromadb's cache.
    """

    def __init__(self, folder: Path) -> None:
        self.python = venv(folder / "mempalace", [PACKAGE])
        self.model = minilm.onnx_folder(folder)
        minilm.check(self.python, self.model)

    def label(self) -> str:
        return f"MemPalace {version_of(self.python, PACKAGE)}"

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        palace, sessions, home = folder / "palace", folder / "sessions", folder / "home"
        env = environment(home, MEMPALACE_PALACE_PATH=f"{palace}")
        cache = home / ".cache/chroma/onnx_models/all-MiniLM-L6-v2"
        cache.mkdir(parents=True)
        (cache / "onnx").symlink_to(self.model)
        self._write(collection, sessions)
        command = self.python.with_name("mempalace")
        start = time.perf_counter()
        printed = call([command, "mine", sessions, "--mode", "convos", "--direct"], env, folder)
        outcome = Outcome(indexing=time.perf_counter() - start)
        written = len(list(sessions.iterdir()))
        if f"Files processed: {written}" not in printed:
            raise RuntimeError(f"MemPalace did not take in all {written} sessions:\n{printed[-1500:]}")
        outcome.index_bytes = bytes_below(palace)
        request = {"palace": f"{palace}", "questions": list(collection.questions)}
        outcome.rankings = list(ask(self.python, SCRIPT, request, env))
        for question in collection.questions[:cold]:
            start = time.perf_counter()
            call([command, "search", question["query"], "--results", "10"], env, folder)
            outcome.cold.append(time.perf_counter() - start)
        return outcome

    @staticmethod
    def _write(collection: Collection, sessions: Path) -> None:
        sessions.mkdir()
        for name, messages in collection.sessions().items():
            if {message["speaker"] for message in messages} <= {"user", "assistant"}:
                lines = [
                    {
                        "type": message["speaker"],
                        "sessionId": name,
                        "uuid": message["id"],
                        "timestamp": said_at(message["said_at"]).isoformat() + "Z",
                        "message": {"role": message["speaker"], "content": message["text"]},
                    }
                    for message in messages
                ]
                (sessions / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf8")
            else:
                said = [
                    {
                        "type": "message",
                        "user": message["speaker"],
                        "text": message["text"],
                        "ts": f"{said_at(message['said_at']).timestamp():.6f}",
                    }
                    for message in messages
                ]
                (sessions / f"{name}.json").write_text(json.dumps(said), "utf8")
