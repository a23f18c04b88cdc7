"""Runs in the venv of bm25s: indexes the sessions on standard input, asks the questions, and prints the sessions."""

import json
import sys
import time
from importlib import import_module


def main() -> None:
    bm25s, stemmer = import_module("bm25s"), import_module("Stemmer").Stemmer("english")
    request = json.load(sys.stdin)
    texts: dict[str, list[str]] = request["texts"]
    modes = {
        "whole session": [(name, "\n".join(said)) for name, said in texts.items()],
        "best message": [(name, text) for name, said in texts.items() for text in said],
    }
    for mode, units in modes.items():
        start = time.perf_counter()
        index = bm25s.BM25()
        index.index(bm25s.tokenize([text for _, text in units], stemmer=stemmer, stopwords="en", show_progress=False))
        tell(mode, "indexing", [], time.perf_counter() - start)
        for question in request["questions"]:
            start = time.perf_counter()
            asked = bm25s.tokenize(question["query"], stemmer=stemmer, stopwords="en", show_progress=False)
            found, scores = index.retrieve(asked, k=len(units), show_progress=False)
            sessions = [units[at][0] for at, score in zip(found[0], scores[0], strict=True) if score > 0]
            tell(mode, question["query_id"], sessions, time.perf_counter() - start)


def tell(mode: str, query_id: str, sessions: list[str], seconds: float) -> None:
    print(json.dumps({"mode": mode, "query_id": query_id, "sessions": sessions, "seconds": seconds}))


if __name__ == "__main__":
    main()
