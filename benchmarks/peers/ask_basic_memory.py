"""Runs in Basic Memory's venv: asks the questions on standard input of its MCP server, and prints the sessions."""

import asyncio
import json
import os
import sys
import time
from importlib import import_module

RESULTS = 50
"""Enough for all sessions of most collections; Basic Memory gives a page of 10 by default."""


async def main() -> None:
    request = json.load(sys.stdin)
    transport = import_module("fastmcp.client.transports").StdioTransport(
        command=request["command"], args=["mcp"], env=dict(os.environ)
    )
    async with import_module("fastmcp").Client(transport) as client:
        for at, question in enumerate([request["questions"][0], *request["questions"]]):
            start = time.perf_counter()
            arguments = {"query": question["query"], "page_size": RESULTS, "output_format": "json"}
            answer = (await client.call_tool("search_notes", arguments)).structured_content
            seconds = time.perf_counter() - start
            found = answer.get("result", answer)
            if "results" not in found:
                sys.exit(f"Basic Memory answers {found}")
            sessions = [hit["title"] for hit in found["results"]]
            if at:  # the first one loads the model
                row = {"mode": "", "query_id": question["query_id"], "sessions": sessions, "seconds": seconds}
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
