"""How fast secrets are redacted, and what is taken for one, over a directory of sessions.

    python -m benchmarks.redaction ../shared/fixtures

Every distinct mark is listed with what stands around it, for a person to judge; of the secret itself only the first
three characters and the length are shown.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import parser
from memory_pipeline.harnesses.model import NotASessionError
from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.redactor import Unredacted, find_secrets
from memory_pipeline.sessions.reading import parse_file

LIMIT = 1500
AROUND = 50


class Recorder(Redactor):
    """Redacts nothing and keeps the texts that it was given, with the limit of an excerpt."""

    def __init__(self) -> None:
        super().__init__(b"")
        self.texts: list[tuple[str, int | None]] = []

    def redact(self, text: str) -> str:
        self.texts.append((text, None))
        return text

    def excerpt(self, text: str, limit: int) -> str:
        self.texts.append((text, limit))
        return text[:limit]


def read(paths: list[Path], redactor: Redactor) -> float:
    """Seconds to read all the files."""
    started = time.perf_counter()
    for path in paths:
        try:
            parse_file(path, tool_text_limit=LIMIT, redactor=redactor)
        except NotASessionError:
            continue
    return time.perf_counter() - started


def best_of(times: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(times))


def speed(redactor: Redactor, texts: list[tuple[str, int | None]]) -> tuple[float, int]:
    """Seconds to redact, and characters that would be stored."""
    started = time.perf_counter()
    stored = sum(
        len(redactor.redact(text) if limit is None else redactor.excerpt(text, limit)) for text, limit in texts
    )
    return time.perf_counter() - started, stored


def masked(text: str) -> str:
    """The text in one line, with the secrets in it shortened."""
    pieces, end = [], 0
    for span in find_secrets(text):
        pieces += [text[end : span.start], f"‹{text[span.start : span.start + 3]}…{span.end - span.start}›"]
        end = span.end
    return re.sub(r"\s+", " ", "".join([*pieces, text[end:]]))


def main() -> None:
    """Print speeds, then what was found."""
    options = parser("redaction", __doc__)
    options.add_argument("sessions", type=Path)
    paths = sorted(path for path in options.parse_args().sessions.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in paths)
    recorder, redactor = Recorder(), Redactor(b"benchmark")
    read(paths, recorder)
    texts = recorder.texts
    without = best_of(5, lambda: read(paths, Unredacted()))
    with_it = best_of(5, lambda: read(paths, redactor))
    print(
        f"{len(paths)} files, {size / 1e6:.1f} MB, {len(texts):,} texts of {sum(len(t) for t, _ in texts) / 1e6:.1f} MB"
    )
    print(f"reading without redaction {without:.3f} s ({size / without / 1e6:.0f} MB/s), with it {with_it:.3f} s")
    print(f"with it takes {with_it / without:.2f} × the time")
    seconds, stored = min(speed(redactor, texts) for _ in range(3))
    print(f"redaction alone {seconds:.3f} s, {stored / seconds / 1e6:.0f} MB/s of stored text\n")
    report(redactor, texts)


def report(redactor: Redactor, texts: list[tuple[str, int | None]]) -> None:
    """What was found, by kind, and each distinct mark with the place where it was found first."""
    flagged: Counter[str] = Counter()
    places: dict[str, tuple[int, str]] = {}
    for text, limit in texts:
        window = text if limit is None or len(text) <= limit + 2048 else f"{text[:2100]}\n{text[-1600:]}"
        spans = find_secrets(window)
        flagged.update({span.kind for span in spans})
        for span in spans:
            mark = redactor.mark(span.kind, window[span.start : span.end])
            around = masked(window[max(span.start - AROUND, 0) : span.end + AROUND // 2])
            count, first = places.get(mark, (0, around))
            places[mark] = (count + 1, first)
    print(f"texts flagged: {dict(flagged.most_common())}; {len(places)} distinct marks:")
    for mark, (count, around) in sorted(places.items()):
        print(f"  {count:4} × {mark}  {around}")


if __name__ == "__main__":
    main()
