"""How many messages of users lie in the results of tools, by harness and form, and some of them to be read by eye.

    python -m benchmarks.voices [DIR…] [--show N] [--every]

DIRs default to ../shared/fixtures and ../shared/more-sessions. Sessions are read as the pipeline reads them; nothing is
stored. `typed` are the messages that users typed, which is all that was heard of them before results were looked into;
`through tools` those that lie in results, by what they answer and the tool; `command` the arguments of a `/command`,
which are typed. `refused` are results of calls that the user refused, with words or without; each counted as a failure
of its tool before. Every N-th of the messages found (`--show`, 20 in all by default) is printed with what it answers;
`--every` prints all. Files that cannot be read, and records that could not, are counted: there should be none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import MORE, SESSIONS, parser
from memory_pipeline.harnesses.model import Message, NotASessionError, ParsedSession
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse

WIDTH = 200
"""Characters that are printed of a message, and of what it answers."""


def main() -> None:
    options = parser("voices", __doc__)
    options.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    options.add_argument("--show", type=int, default=20, metavar="N")
    options.add_argument("--every", action="store_true")
    chosen = options.parse_args()
    directories = chosen.directories or [path for path in (SESSIONS, MORE) if path.is_dir()]
    counts: Counter[tuple[str, str, str]] = Counter()
    totals: Counter[str] = Counter()
    found: list[tuple[str, Message]] = []
    for path, session in _sessions(directories, totals):
        totals["sessions"] += 1
        totals["records not read"] += len(session.problems)
        of_commands = {m.line for m in session.messages if m.role == "injected" and m.text.startswith("<command-")}
        for message in session.messages:
            if message.role == "user" and message.answer_to:
                counts[session.harness, message.answer_to, message.tool_name or "?"] += 1
                found.append((f"{Path(path).name}:{message.line}", message))
            elif message.role == "user":
                totals["typed"] += 1
                if message.line in of_commands:
                    counts[session.harness, "command", "-"] += 1
            elif message.answer_to:
                counts[session.harness, "refused", message.tool_name or "?"] += 1
    for name in ("sessions", "files not read", "records not read", "typed"):
        print(f"{name}: {totals[name]:,}")
    share = len(found) / totals["typed"] if totals["typed"] else 0.0
    print(f"through tools: {len(found)}, {share:.1%} of what is typed\n")
    for (harness, form, tool), count in sorted(counts.items()):
        print(f"{count:5}  {harness:12} {form:14} {tool}")
    step = 1 if chosen.every else max(1, -(-len(found) // max(1, chosen.show)))
    for place, message in found[::step]:
        print(f"\n{place} ({message.answer_to})")
        print(f"  <- {_shown(message.answered or 'not known')}\n  -> {_shown(message.text)}")


def _sessions(directories: list[Path], totals: Counter[str]) -> Iterator[tuple[str, ParsedSession]]:
    """Every session that can be read; what else there is that looks like one is named."""
    for source in find_sources(directories):
        try:
            yield source.path, parse(source)
        except NotASessionError as error:
            totals["files not read"] += 1
            print(f"{source.path}: {error}")


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}…"


if __name__ == "__main__":
    main()
