"""Plain baselines in the same run: BM25 alone, vectors alone."""

import time
from pathlib import Path

import numpy as np

from benchmarks.peers.system import (
    Collection,
    Outcome,
    Ranking,
    ask,
    best_first,
    environment,
    venv,
    version_of,
    with_speaker,
)
from memory_pipeline.text.encoder import bundled_folder

SCRIPT = Path(__file__).with_name("ask_bm25s.py")


class Words:
    """BM25 alone, stemmed, without stop words: a session as a whole, or by its best message."""

    def __init__(self, folder: Path) -> None:
        self.python = venv(folder / "bm25s", ["bm25s", "PyStemmer"])

    def label(self) -> str:
        return f"bm25s {version_of(self.python, 'bm25s')}"

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        """Its index stays in memory; there is no command to ask cold."""
        texts = {
            name: [with_speaker(message) for message in messages] for name, messages in collection.sessions().items()
        }
        request = {"texts": texts, "questions": list(collection.questions)}
        rankings = list(ask(self.python, SCRIPT, request, environment(folder / "home")))
        made = {ranking.mode: ranking.seconds for ranking in rankings if ranking.query_id == "indexing"}
        asked = [ranking for ranking in rankings if ranking.query_id != "indexing"]
        return Outcome(asked, indexing=sum(made.values()))


class Vectors:
    """MiniLM alone through sentence-transformers, as bundled: a session by its most similar message."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(f"{bundled_folder()}", device="cpu")

    def label(self) -> str:
        return "MiniLM"

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        """Its vectors stay in memory; there is no command to ask cold."""
        start = time.perf_counter()
        texts = [with_speaker(message) for message in collection.messages]
        vectors = np.asarray(self.model.encode(texts, normalize_embeddings=True))
        outcome = Outcome(indexing=time.perf_counter() - start, index_bytes=vectors.nbytes)
        sessions = [message["session"] for message in collection.messages]
        for question in collection.questions:
            start = time.perf_counter()
            near = vectors @ np.asarray(self.model.encode(question["query"], normalize_embeddings=True))
            ranked = best_first(sessions[at] for at in np.argsort(-near, kind="stable"))
            outcome.rankings.append(Ranking("best message", question["query_id"], ranked, time.perf_counter() - start))
        return outcome
