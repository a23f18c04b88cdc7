"""What of the words that users typed lies in a window that is observed.

    python -m benchmarks.heard [SESSIONS_DIR]... [--list]

The sessions of each folder (default ../shared/fixtures and ../shared/more-sessions) are read and cut into windows in an
empty workspace, as `memory run --all` does, without observing them. Counted are words of messages with the role user
that were not voided, without what was pasted. `by window` is the share in windows that were observed while the rule of
five user messages counted each window by itself: the baseline. `by session` is the share in windows that are observed
now, `with rules` that with the windows of sessions that stay short, which are looked through for the user's rules and
corrections only. `not at all` is the rest, with its reasons. `--list` names the sessions that lie outside `by session`.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import FIXTURES, MORE, parser
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.sessions.windows import COMPACTION
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.similarity import words
from memory_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True)
class Typed:
    """The words of a window that a user typed."""

    session_id: str
    words: int
    messages: int
    by_window: bool
    """Whether the rule that counted by window had it observed."""
    by_session: bool
    rules_only: bool
    reason: str


def windows_of(folder: Path) -> Iterator[Typed]:
    """Every window with typed words of the sessions below the folder."""
    with tempfile.TemporaryDirectory() as made:
        settings = Settings(workspace=Path(made), timezone="UTC", default_session_dirs=False, session_dirs=(folder,))
        lake = Lake.from_settings(settings)
        stage = SessionsStage(Workspace(settings, lake), Catalogue(lake, settings), datetime.now(UTC))
        stage.look()
        for day in stage.catalogue.days():
            bring_up_to_date(stage, lake, day)
        typed = lake.read("messages").filter(pl.col("role") == "user", ~pl.col("voided"))
        counts: Counter[str] = Counter()
        for message in typed.iter_rows(named=True):
            counts[message["dedupe_key"]] += len(words(_own(message)))
        for window in lake.read("windows").iter_rows(named=True):
            if counts[window["dedupe_key"]]:
                yield _of(window, counts[window["dedupe_key"]], settings.min_user_messages)


def _own(message: dict[str, Any]) -> str:
    """The text without what was pasted."""
    parts, end = [], 0
    for span in message["quoted"] or ():
        parts.append(message["text"][end : span["start"]])
        end = span["end"]
    return "\n".join([*parts, message["text"][end:]])


def _of(window: dict[str, Any], count: int, least: int) -> Typed:
    return Typed(
        window["session_id"],
        count,
        window["user_messages"],
        window["trigger"] == COMPACTION or window["user_messages"] >= least,
        window["observed"],
        bool(window["rules_only"]),
        window["reason"] or "",
    )


def _share(chosen: Iterable[Typed], total: int) -> str:
    found = sum(window.words for window in chosen)
    return f"{found:7,} of {total:,} words, {100 * found / total if total else 0:.1f} %"


def main() -> None:
    options = parser("heard", __doc__)
    options.add_argument("sessions", nargs="*", type=Path, default=[FIXTURES, MORE], metavar="SESSIONS_DIR")
    options.add_argument("--list", action="store_true", help="name the sessions that lie outside `by session`")
    given = options.parse_args()
    for folder in given.sessions:
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not there; name a folder of sessions.")
        found = list(windows_of(folder))
        total = sum(window.words for window in found)
        print(f"{folder}: {len(found)} windows with typed words, of {len({w.session_id for w in found})} sessions")
        print("  by window  ", _share((w for w in found if w.by_window), total))
        print("  by session ", _share((w for w in found if w.by_session), total))
        print("  with rules ", _share((w for w in found if w.by_session or w.rules_only), total))
        left = [w for w in found if not w.by_session and not w.rules_only]
        print("  not at all ", _share(left, total))
        for reason in sorted({w.reason for w in left}):
            print(f"    {sum(w.reason == reason for w in left)} windows: {reason}")
        if given.list:
            for window in sorted((w for w in found if not w.by_session), key=lambda w: -w.words):
                print(f"    {window.words:6,} words, {window.messages} messages: {window.session_id}: {window.reason}")


if __name__ == "__main__":
    main()
