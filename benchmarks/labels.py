"""The labels of `benchmarks/labels` in the form that the scorer reads: their words are looked up in the sessions.

    python -m benchmarks.labels TARGET_DIR
    python -m benchmarks.labels benchmarks/labels/strangers --place LABELS_DIR --sessions ../shared/more-sessions

The second form takes labels with words, as readers write them, and keeps the places. A label holds no words of a
session that a person may not want repeated: a quote is kept as the place where it stands in its line, and is restored
from the session's file.
"""

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common import FIXTURES, GOLD, parser

LABELS = Path(__file__).with_name("labels")
STRANGERS, SECOND_READER = LABELS / "strangers", LABELS / "strangers" / "second"
"""Labels of sessions in `../shared/more-sessions`, and those of a second reader of some of them."""
_LOOKED_AT = (
    *("9b138c7e", "43c87127", "75a1a0f1", "768de5d6", "abc0b1d7"),
    *("9bdf5c9b", "0822e04b", "266b3f40", "56de1726", "5a69ca08"),
)


def is_looked_at(name: str) -> bool:
    """Whether rules were chosen with this session of `STRANGERS` in view."""
    return any(part in name for part in _LOOKED_AT)


@cache
def scorer() -> Any:
    """The module `score.py`."""
    spec = importlib.util.spec_from_file_location("score", GOLD / "score.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts_of(session: Path) -> dict[int, str]:
    """What offsets count in, by line: what the scorer takes as said, and of any other line all its strings."""
    texts = {}
    with session.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                texts[number] = "\n".join(_strings(json.loads(line)))
            except ValueError:
                texts[number] = line
    return texts | dict(scorer().spoken(session))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def restored(label: dict[str, Any], texts: dict[int, str]) -> dict[str, Any]:
    """The label with its words: a quote, or a keyword that names somebody, is [start, end] in the text of its line."""

    def words(place: Any, line: int) -> str:
        return place if isinstance(place, str) else texts[line][place[0] : place[1]]

    facts = [
        fact
        | {"quote": words(fact["quote"], fact["line"]), "keywords": [words(k, fact["line"]) for k in fact["keywords"]]}
        for fact in label["facts"]
    ]
    traps = [trap | {"quote": words(trap["quote"], trap["line"])} for trap in label["traps"]]
    return label | {"facts": facts, "traps": traps}


def placed(label: dict[str, Any], texts: dict[int, str]) -> dict[str, Any]:
    """The label without the session's words: each quote as [start, end] in the text of its line."""

    def place(quote: str, line: int) -> list[int]:
        start = texts[line].index(quote)
        return [start, start + len(quote)]

    facts = [fact | {"quote": place(fact["quote"], fact["line"])} for fact in label["facts"]]
    traps = [{k: t[k] for k in ("line", "why")} | {"quote": place(t["quote"], t["line"])} for t in label["traps"]]
    return label | {"facts": facts, "traps": traps}


def restore(
    target: Path, fixtures: Path = FIXTURES, labels: Path = LABELS, of: Callable[[str], bool] = lambda name: True
) -> None:
    """Every label of the folder whose name is wanted into `target`, a file each, as the scorer wants them."""
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(file for file in labels.glob("*.json") if of(file.name)):
        label = json.loads(file.read_text("utf-8"))
        whole = restored(label, texts_of(fixtures / label["file"]))
        name = f"{Path(label['file']).name}.gold.json"
        (target / name).write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", "utf-8")


@contextmanager
def label_folder(*, with_gold: bool) -> Iterator[Path]:
    """A temporary folder with these labels, and with the gold ones beside them if wanted."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        restore(target)
        for file in sorted((GOLD / "labels").glob("*.gold.json")) if with_gold else ():
            (target / file.name).write_bytes(file.read_bytes())
        yield target


def main() -> None:
    options = parser("labels", __doc__)
    options.add_argument("target", type=Path, metavar="TARGET_DIR")
    options.add_argument("--place", type=Path, metavar="LABELS_DIR", help="labels with words")
    options.add_argument("--sessions", type=Path, default=FIXTURES)
    asked = options.parse_args()
    if not asked.place:
        return restore(asked.target)
    asked.target.mkdir(parents=True, exist_ok=True)
    for file in sorted(asked.place.glob("*.json")):
        label = json.loads(file.read_text("utf-8"))
        text = json.dumps(placed(label, texts_of(asked.sessions / label["file"])), ensure_ascii=False, indent=1)
        (asked.target / f"{Path(label['file']).stem}.json").write_text(text + "\n", "utf-8")
    return None


if __name__ == "__main__":
    main()
