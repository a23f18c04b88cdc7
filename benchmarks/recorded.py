"""The language-model observer on labelled sessions, scored from answers that were recorded, without asking anybody.

    python -m benchmarks.observing [--strangers] --answers ANSWERS_DIR [--model NAME]

ANSWERS_DIR holds one JSON file per request, `<first two of the key>/<key>.json`, whose only required field is `text`
(`memory_pipeline/llm/cache.py` has the format; a workspace's `answers/` is such a folder, so a run with OBSERVER_MODEL
set to NAME records them by itself). Where an answer is missing, its request is written to
`ANSWERS_DIR/requests/<key>.md`, so that anybody can have it answered by any model and put the answer in its place; as
a part is shown what the parts before it gave, a window of several parts takes several rounds. While one is missing,
no figure is printed.
"""

from __future__ import annotations

import sys
from datetime import UTC, date
from pathlib import Path
from zoneinfo import ZoneInfo

from benchmarks.common import FIXTURES
from benchmarks.observing import CUT, UNCUT, Session, line, rows, score, sessions
from memory_pipeline.llm.cache import AnswerCache, NotRecordedError
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.types import Context, Segment

UTC_ZONE = ZoneInfo("UTC")


class Recorder:
    """A replacement for `Client` without a model, which writes down what it cannot answer."""

    def __init__(self, directory: Path, model: str) -> None:
        self._cache = AnswerCache(directory)
        self.config = ModelConfig(model, temperature=0.3)
        self.model = model
        self.requests = directory / "requests"

    def complete(self, request: Request, for_day: date) -> Answer:
        path = self.requests / f"{request.key}.md"
        if answer := self._cache.known(request):
            path.unlink(missing_ok=True)
            return answer
        self.requests.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Instructions\n\n{request.system}\n\n# Request\n\n{request.prompt}\n", "utf-8")
        raise NotRecordedError(request.key)

    def is_cached(self, request: Request) -> bool:
        return self._cache.known(request) is not None


def observe(session: Session, observer: LanguageModelObserver) -> list[Segment] | None:
    """The session's segments, None where an answer is missing."""
    first = min(m.said_at for m in session.said)
    try:
        return observer.observe(session.said, Context(first.astimezone(UTC).date(), session.file))
    except NotRecordedError as missing:
        print(f"  {session.file}: {missing}", file=sys.stderr)
        return None


def report(labels: Path, answers: Path, model: str, files: Path = FIXTURES) -> None:
    """The figures by session and in all, or which answers are missing and no figure."""
    recorder = Recorder(answers, model)
    observer = LanguageModelObserver(recorder, UTC_ZONE, at_once=1)  # type: ignore[arg-type]
    observed = [(session, observe(session, observer)) for session in sessions(labels, files)]
    missing = [session.file for session, segments in observed if segments is None]
    if missing:
        print(
            f"{observer.name}: {len(missing)} of {len(observed)} sessions lack an answer, so there is no figure. Have "
            f"the requests in {recorder.requests} answered into {answers}/<first two of the key>/<key>.json; call it "
            "again."
        )
        return
    found = [row for session, segments in observed for row in rows(session, segments or [])]
    for title, budget in (("", CUT), (", all", UNCUT)):
        for file, values in score(labels, found, files, budget).items():
            print(line(f"{observer.name[:34]}{title}" if file == "TOTAL" else f"  {file[-38:]}", values))
    report_flags(observed)


def report_flags(observed: list[tuple[Session, list[Segment] | None]]) -> None:
    """How honest the answers were."""
    facts = [fact for _, segments in observed for segment in segments or [] for fact in segment.facts]
    flags = [flag for fact in facts for flag in fact.flags]
    counts = ", ".join(f"{flags.count(flag)} {flag}" for flag in sorted(set(flags))) or "no flags"
    unparsed = sum(not segment.parsed for _, segments in observed for segment in segments or [])
    print(f"{len(facts)} facts: {counts}; {unparsed} segments not parsed")
