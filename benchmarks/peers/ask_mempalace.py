"""Runs in MemPalace's venv: asks the questions on standard input as its MCP server does, and prints the sessions."""

import json
import sys
import time
from importlib import import_module
from pathlib import Path

RESULTS = 50
"""Enough that ten sessions are among them; MemPalace takes 5 by default and 100 at most."""
FARTHEST = 1.5
"""The distance that its MCP server's search has by default."""


def main() -> None:
    search = import_module("mempalace.searcher").search_memories
    request = json.load(sys.stdin)
    for mode in ("vector", "union"):
        for at, question in enumerate([request["questions"][0], *request["questions"]]):
            start = time.perf_counter()
            found = search(
                question["query"],
                request["palace"],
                n_results=RESULTS,
                max_distance=FARTHEST,
                candidate_strategy=mode,
            )
            seconds = time.perf_counter() - start
            if "error" in found:
                sys.exit(f"MemPalace answers {found}")
            sources = []
            for hit in found["results"]:
                sources.append(hit["source_file"])
                sources += [copy["source_file"] for copy in hit.get("also_in") or [] if copy.get("source_file")]
            sessions = [Path(source).stem for source in sources]
            if at:  # the first one loads the model
                print(
                    json.dumps(
                        {"mode": mode, "query_id": question["query_id"]} | {"sessions": sessions, "seconds": seconds}
                    )
                )


if __name__ == "__main__":
    main()
