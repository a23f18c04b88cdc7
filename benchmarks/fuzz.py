"""Looks for files that a reader stumbles over, guided by the code that each reaches.

    pip install atheris
    python -m benchmarks.fuzz --seconds 600

The target is `memory_pipeline_tests/sessions/fuzzing.py`, one harness after the other, begun with the golden
files of the tests and with `memory_pipeline_tests/sessions/corpus`. What is found is put into the working directory
(`--into`), with `crash` or `timeout` in the name of what fails; a second call with `--keep` writes those inputs to the
corpus of the tests that reach code which none before them reached, as long as they are few and small. Not a
dependency: Atheris has wheels for few versions of Python only.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.common import ROOT, parser

try:
    import atheris
except ImportError:
    atheris = None

TESTS = ROOT / "memory_pipeline_tests/sessions"
SUFFIXES = {
    "pi": ".jsonl",
    "claude_code": ".jsonl",
    "codex": ".jsonl",
    "gemini": ".jsonl",
    "gemini-snapshot": ".json",
    "opencode": ".folders",
}
MAX_LENGTH = 8192
MAX_KEPT, MAX_KEPT_BYTES = 48, 120_000
_WORD = re.compile(r'"([A-Za-z_$][\w$/ .-]{1,40})"|\b([a-z]+_[a-z_]+)\b')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(rb"-?\d+")
VALUES = (
    *(b'""', b"null", b"true", b"[]", b"{}", b"-1", b"1e999", b"NaN", b"18446744073709551616", b"9" * 400),
    *(b'"\\ud800"', b'"\\u0000"', b"\x00", b"\xff", b'"0001-01-01T00:00:00Z"', b'"9999-12-31T23:59:59-23:59"'),
    *(b"1e300", b'"2026-05-01T12:00:00Z"', b'"1"', b'"2"', b"[[[[[[[[]]]]]]]]", b'"<skill>"', b'"[image: "'),
    *(b'"data:image/png;base64,aGk="', b'"<system-reminder>x"', b'"DO NOT INDEX"', b'"<private>"'),
)


def words() -> list[bytes]:
    """The names and kinds that the readers know, quoted."""
    source = ROOT / "memory_pipeline/harnesses"
    found: set[str] = set()
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found.update(one or other for one, other in _WORD.findall(text))
        found.update(re.findall(r"^    (\w+): .*= None$", text, re.MULTILINE))
        for listed in re.findall(r"words\(([^)]*)\)", text):
            found.update(re.findall(r"[\w-]+", listed))
    return sorted(b'"%s"' % word.encode() for word in found)


def seeds(harness: str) -> list[bytes]:
    """The golden files of a harness, its files in the corpus, and their first lines alone."""
    name, suffix = harness.split("-")[0], SUFFIXES[harness]
    if harness == "opencode":
        return [_as_lines(folder) for folder in sorted((TESTS / "golden" / name).iterdir()) if folder.is_dir()]
    folders = [TESTS / "golden" / name, TESTS / "corpus"]
    paths = [path for path in folders[0].rglob(f"*{suffix}") if path.is_file()]
    paths += [path for path in folders[1].glob(f"{name}*{suffix}") if path.is_file()]
    whole = [path.read_bytes() for path in sorted(paths)]
    return [data for data in whole if len(data) <= MAX_LENGTH] + [
        b"".join(data.splitlines(keepends=True)[:4])[:MAX_LENGTH] for data in whole
    ]


def _as_lines(folder: Path) -> bytes:
    """The files of a folder of OpenCode as `check_folders` takes them."""
    storage = folder / "storage"
    lines = [json.dumps(json.loads(path.read_bytes())) for path in storage.glob("session/*/*.json")][:1]
    for path in sorted(storage.glob("message/*/*.json")):
        lines.append(json.dumps(json.loads(path.read_bytes())))
        parts = sorted((storage / "part" / path.stem).glob("*.json"))
        lines += [f"+{json.dumps(json.loads(part.read_bytes()))}" for part in parts]
    return "\n".join(lines).encode()


def target(harness: str) -> Callable[[bytes], object]:
    """What is called with every input."""
    from memory_pipeline_tests.sessions.fuzzing import check, check_folders

    return check_folders if harness == "opencode" else lambda data: check(data, f"ses_fuzz{SUFFIXES[harness]}")


class Mutator:
    """Changes values and lines of a session, where flipping bytes would mostly break its JSON."""

    def __init__(self, dictionary: list[bytes], known: list[bytes]) -> None:
        self.words = dictionary
        self.lines = [line for data in known for line in data.splitlines(keepends=True)]

    def __call__(self, data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.25:
            return bytes(atheris.Mutate(data, most))
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            data = self._value(data, chance) if chance.random() < 0.6 else self._line(data, chance)
        return data[:most]

    def _value(self, data: bytes, chance: random.Random) -> bytes:
        places = [found.span() for found in (_STRING if chance.random() < 0.8 else _NUMBER).finditer(data)]
        if not places:
            return data + chance.choice(self.words)
        start, end = chance.choice(places)
        other = chance.choice(places)
        new = chance.choice([chance.choice(self.words), chance.choice(VALUES), data[slice(*other)]])
        return data[:start] + new + data[end:]

    def _line(self, data: bytes, chance: random.Random) -> bytes:
        lines = data.splitlines(keepends=True) or [b"\n"]
        place = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            del lines[place]
        elif kind == 1:
            lines.insert(place, chance.choice(lines))
        elif kind == 2 and self.lines:
            lines.insert(place, chance.choice(self.lines))
        elif kind == 3:
            lines[place] = lines[place].rstrip(b"\n")
        elif kind == 4:
            lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)]
        else:
            other = chance.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        return b"".join(lines)


def noted(run: Callable[[bytes], object], data: bytes, prefix: Path) -> None:
    """What fails is kept, one input for each place of the code, and the search goes on."""
    try:
        run(data)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__:
            cause = cause.__cause__
        place = traceback.extract_tb(cause.__traceback__)[-1]
        file = Path(f"{prefix}-crash-{Path(place.filename).stem}-{place.lineno}-{type(cause).__name__}")
        if not file.exists() or file.stat().st_size > len(data):
            file.write_bytes(data)
            print(f"{file}: {cause!r}", file=sys.stderr, flush=True)


def fuzz(harness: str, seconds: int, into: Path) -> None:
    """Fuzz one harness; ends the process."""
    with atheris.instrument_imports(include=["memory_pipeline.sessions"]):
        run = target(harness)
    folder = into / harness
    folder.mkdir(parents=True, exist_ok=True)
    known = seeds(harness)
    for number, data in enumerate(known):
        (folder / f"seed-{number}").write_bytes(data)
    dictionary = words()
    listed = into / "dictionary"
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in (*dictionary, *VALUES))
    listed.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")
    mutate = Mutator(dictionary, known)
    atheris.Setup(
        [
            *(sys.argv[0], str(folder), f"-max_total_time={seconds}", f"-max_len={MAX_LENGTH}", f"-dict={listed}"),
            *("-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1", "-verbosity=1", "-reload=0"),
            f"-artifact_prefix={into / harness}-",
        ],
        lambda data: noted(run, data, into / harness),
        custom_mutator=lambda data, most, seed: mutate(data, most, seed),
    )
    atheris.Fuzz()


def keep(into: Path) -> None:
    """Put those inputs into the corpus that take ways through the readers which no golden file and none before took."""
    from memory_pipeline_tests.sessions.fuzzing import CORPUS

    known: set[Way] = set()
    size = 0
    for harness, suffix in SUFFIXES.items():
        ways = Ways(target(harness))
        for data in seeds(harness):
            known |= ways.of(data)
        found = sorted((path.read_bytes() for path in (into / harness).glob("*") if path.is_file()), key=len)
        share = MAX_KEPT // len(SUFFIXES)
        kept: list[bytes] = []
        reached: list[tuple[bytes, set[Way]]] = []
        for data in found:
            new = ways.of(data) - known
            if new:
                reached.append((data, new))
        while reached and len(kept) < share:
            data, new = max(reached, key=lambda one: len(one[1]) / (200 + len(one[0])))
            kept.append(data)
            known |= new
            reached = [(other, left) for other, more in reached if other is not data and (left := more - known)]
        for number, data in enumerate(kept, start=1):
            if size + len(data) <= MAX_KEPT_BYTES:
                size += len(data)
                (CORPUS / f"{harness}-{number:02}{suffix}").write_bytes(data)
        print(f"{harness}: {len(found)} inputs, {len(kept)} kept, {len(known)} ways known", flush=True)


Way = tuple[str, int, int]
"""From one line of a file to the next that is run in the same function."""


class Ways:
    """Follows which lines of the readers are run after which."""

    def __init__(self, run: Callable[[bytes], object]) -> None:
        self.run = run

    def of(self, data: bytes) -> set[Way]:
        """The ways that are taken; none where the run fails, which is for a person to look at."""
        self.taken: set[Way] = set()
        sys.settrace(self._enter)
        try:
            self.run(data)
        except Exception as error:
            print(f"failed: {error!r}", flush=True)
            return set()
        finally:
            sys.settrace(None)
        return self.taken

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if "memory_pipeline/sessions/" not in file:
            return None
        before = 0

        def follow(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal before
            if event == "line":
                self.taken.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return follow

        return follow


def main() -> None:
    options = parser("fuzz", __doc__)
    options.add_argument("--seconds", type=int, default=600, help="over all harnesses")
    options.add_argument("--into", type=Path, default=Path("fuzzing"), help="where to put what is found")
    options.add_argument("--harness", choices=SUFFIXES, help="only this one")
    options.add_argument("--keep", action="store_true", help="write a small part of what was found to the corpus")
    asked = options.parse_args()
    if atheris is None:
        sys.exit("Atheris is not installed; run: pip install atheris")
    into = asked.into.resolve()
    if asked.harness and not asked.keep:
        fuzz(asked.harness, asked.seconds, into)
    for harness in SUFFIXES if not asked.keep else ():
        share = str(asked.seconds // len(SUFFIXES))
        subprocess.run(
            [sys.executable, "-m", "benchmarks.fuzz", "--harness", harness, "--seconds", share, "--into", into],
            cwd=ROOT,
            check=False,
        )
    if asked.keep:
        keep(into)


if __name__ == "__main__":
    main()
