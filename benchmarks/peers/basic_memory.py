"""Basic Memory: sessions imported as conversations by its command, asked through its MCP server."""

import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import minilm
from benchmarks.peers.system import Collection, Outcome, ask, bytes_below, call, environment, said_at, venv, version_of

PACKAGE = "basic-memory"
SCRIPT = Path(__file__).with_name("ask_basic_memory.py")
NEWER_THAN_THERE = ("certifi>=2026.7.22",)
"""fastmcp 4.1.3 asks for a certifi that is not in every registry yet."""
SQLITE = 'import sys, pysqlite3.dbapi2; sys.modules |= {"sqlite3": pysqlite3, "sqlite3.dbapi2": pysqlite3.dbapi2}\n'
"""Its vectors lie in an extension of SQLite, which not every Python can load; pysqlite3-binary can."""
LEAST = {"hybrid, least similarity .55": "0.55", "hybrid, no least similarity": "0.0"}
"""Its search by default, and with the threshold off, which is made for another model than MiniLM."""


def python_3_12() -> str:
    """A Python that Basic Memory runs on. Raises FileNotFoundError."""
    for name in ("python3.12", "python3.13", "python3.14", "python3"):
        if found := shutil.which(name):
            asked = subprocess.run([found, "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True)
            if asked.stdout.strip() == b"True":
                return found
    raise FileNotFoundError("Basic Memory needs Python 3.12 or newer; none is on the PATH.")


class BasicMemory:
    """Its default search type, hybrid, without the reranker, which is off by default and another model to download."""

    def __init__(self, folder: Path) -> None:
        requirements = [PACKAGE, "pysqlite3-binary"]
        self.python = venv(folder / "basic-memory", requirements, python=python_3_12(), loose=NEWER_THAN_THERE)
        packages = next((folder / "basic-memory/lib").glob("python3.*/site-packages"))
        (packages / "sqlite_with_extensions.pth").write_text(SQLITE, "utf8")
        self.cache = folder / "fastembed"
        model = self.cache / "models--Qdrant--all-MiniLM-L6-v2-onnx"
        if not model.exists():
            (model / "refs").mkdir(parents=True)
            (model / "refs/main").write_text("bundled", "utf8")
            shutil.copytree(minilm.onnx_folder(folder), model / "snapshots/bundled")
        minilm.check(self.python, model / "snapshots/bundled")

    def label(self) -> str:
        return f"Basic Memory {version_of(self.python, PACKAGE)}"

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        home = folder / "home"
        env = environment(
            home,
            FASTEMBED_CACHE_PATH=f"{self.cache}",
            BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL="sentence-transformers/all-MiniLM-L6-v2",
        )
        export = folder / "conversations.json"
        self._write(collection, export)
        command = self.python.with_name("basic-memory")
        start = time.perf_counter()
        call([command, "import", "claude", "conversations", export], env, folder)
        printed = call([command, "reindex"], env, folder)
        outcome = Outcome(indexing=time.perf_counter() - start)
        if "Embeddings complete" not in printed:
            raise RuntimeError(f"Basic Memory made no vectors:\n{printed[-1500:]}")
        outcome.index_bytes = bytes_below(home / ".basic-memory", (".log",))
        request = {"command": f"{command}", "questions": list(collection.questions)}
        for mode, least in LEAST.items():
            answers = ask(self.python, SCRIPT, request, env | {"BASIC_MEMORY_SEMANTIC_MIN_SIMILARITY": least})
            outcome.rankings += [replace(ranking, mode=mode) for ranking in answers]
        for question in collection.questions[:cold]:
            start = time.perf_counter()
            call([command, "tool", "search-notes", question["query"], "--json"], env, folder)
            outcome.cold.append(time.perf_counter() - start)
        return outcome

    @staticmethod
    def _write(collection: Collection, export: Path) -> None:
        conversations = []
        for name, messages in collection.sessions().items():
            times = [said_at(message["said_at"]).isoformat() + "Z" for message in messages]
            said = [
                {
                    "uuid": message["id"],
                    "sender": "human" if message["speaker"] == "user" else message["speaker"],
                    "text": message["text"],
                    "content": [],
                    "created_at": moment,
                }
                for message, moment in zip(messages, times, strict=True)
            ]
            dates = {"created_at": times[0], "updated_at": times[-1]}
            conversations.append({"uuid": name, "name": name, "chat_messages": said} | dates)
        export.write_text(json.dumps(conversations), "utf8")
