"""How long the extractive observer takes over a window, how that grows, and beside it embedding the same messages.

    python -m benchmarks.observing_speed [FIXTURES_DIR] [--largest N]

Windows with 200 to 20,000 messages that were said are made of real sessions (FIXTURES_DIR, default
../shared/fixtures; the bundled examples where there is none), with the results of tools that stand between them:

- real: the sessions one after the other, as often as it takes, under new ids.
- dense: the same, but four of five longer words are replaced by one of the fifty most common ones, so that nearly
  every unit shares most of its words with all others: the worst that choosing can meet.

Seconds of the processor and peak memory, without that of the texts, are of a fresh process for each window; what a
process does once, like compiling patterns, is done before. The exponent is that of the growth from the size before: 1
is linear, 2 quadratic. No exponent should be near 2; that of choosing alone is, where thousands are kept that share
their words. The bar: observing 1,000 messages takes at most twice as long as embedding them once with the bundled
model, which cuts each at 256 tokens as it does for the pipeline. Both are measured by the clock, one after the other in
one process.
"""

import json
import math
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

from benchmarks.common import ROOT, SESSIONS, parser
from memory_pipeline.harnesses.model import NotASessionError
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.text.encoder import BATCH, Encoder
from memory_pipeline.text.similarity import content_words

KINDS = ("real", "dense")
SIZES = (200, 1_000, 5_000, 20_000)
COMPARED = 1_000
BAR = 2.0
COMMON, REPLACED = 50, 0.8
_LONGER = re.compile(r"[A-Za-z]{4,}")


def messages(folder: Path) -> list[WindowMessage]:
    """Of all sessions in this folder that can be read, in order."""
    found: list[WindowMessage] = []
    for path in sorted(p for p in folder.rglob("*.json*") if p.is_file()):
        try:
            session = parse_file(path)
        except NotASessionError:
            continue
        for m in session.messages:
            quoted = tuple(quoted_spans(m.text)) if m.role == "user" else ()
            found.append(WindowMessage(m.message_id, m.role, m.said_at, m.text, m.is_error, quoted))
    return found


def is_said(message: WindowMessage) -> bool:
    return message.role in ("user", "assistant") and bool(message.text.strip())


def window(known: list[WindowMessage], size: int, kind: str) -> list[WindowMessage]:
    """Messages until so many were said."""
    found: list[WindowMessage] = []
    common = most_common(known)
    said = 0
    for number, message in enumerate(cycle(known)):
        if said == size:
            break
        said += is_said(message)
        text = dense(message.text, number, common) if kind == "dense" and is_said(message) else message.text
        quoted = () if kind == "dense" else message.quoted
        found.append(replace(message, message_id=f"m{number}", text=text, quoted=quoted))
    return found


def most_common(known: list[WindowMessage]) -> list[str]:
    counts = Counter(w for m in known if is_said(m) for w in content_words(m.text) if _LONGER.fullmatch(w))
    return [word for word, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:COMMON]]


def dense(text: str, number: int, common: list[str]) -> str:
    chance = random.Random(number)
    return _LONGER.sub(lambda m: chance.choice(common) if chance.random() < REPLACED else m[0], text)


def measure(folder: Path, kind: str, size: int) -> dict[str, float]:
    known = messages(folder)
    observer = ExtractiveObserver()
    observer.observe(known[:20])
    said = window(known, size, kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    segments = observer.observe(said)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    facts = sum(len(segment.facts) for segment in segments)
    return {"seconds": seconds, "peak": peak / 1024, "messages": len(said), "facts": facts}


def compare(folder: Path, kind: str) -> None:
    """Prints seconds by the clock of embedding what was said once, and of observing it."""
    said = window(messages(folder), COMPARED, kind)
    encoder = Encoder()
    encoder.encode([m.text for m in said[:BATCH]])  # loads the model

    def seconds(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    embedding = seconds(lambda: encoder.encode([m.text for m in said if is_said(m)]))
    print(f"{kind}: {COMPARED} messages embedded in {embedding:.1f} s")
    observer = ExtractiveObserver()
    took = seconds(partial(observer.observe, said))
    times = took / embedding
    print(f"  {observer.name}: {took:.2f} s, {times:.2f} times as long, at most {BAR:.1f} wanted", flush=True)


def in_fresh_process(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.observing_speed", *arguments]
    answer: dict[str, float] = json.loads(
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    )
    return answer


def main() -> None:
    options = parser("observing_speed", __doc__)
    options.add_argument("folder", type=Path, nargs="?", default=SESSIONS, metavar="FIXTURES_DIR")
    options.add_argument("--largest", type=int, default=SIZES[-1], metavar="N", help="messages of the largest window")
    options.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help="measure one window in this process")
    asked = options.parse_args()
    folder = asked.folder.resolve()
    if asked.one:
        print(json.dumps(measure(folder, asked.one[0], int(asked.one[1]))))
        return
    print(
        f"{'':10}{'said':>8}{'with tools':>12}{'facts':>8}{'seconds':>10}{'ms each':>10}{'peak MB':>10}{'exponent':>10}"
    )
    for kind in KINDS:
        before = 0.0
        for number, size in enumerate(s for s in SIZES if s <= asked.largest):
            found = in_fresh_process(str(folder), "--one", kind, str(size))
            seconds = found["seconds"]
            growth = math.log(seconds / before) / math.log(size / SIZES[number - 1]) if number else math.nan
            before = seconds
            exponent = "" if math.isnan(growth) else f"{growth:.2f}"
            print(
                f"{kind:10}{size:>8}{found['messages']:>12}{found['facts']:>8}{seconds:>10.2f}"
                f"{1000 * seconds / size:>10.2f}{found['peak']:>10.0f}{exponent:>10}",
                flush=True,
            )
    for kind in KINDS:
        compare(folder, kind)


if __name__ == "__main__":
    main()
