"""A month with a model, or some days of one, in three runs with a person in between: what a run does and must leave.

Every stage is there, with the observer and the reflector asking a model on loopback, the index, distilling, REVIEW.md
and MEMORY.md; only Dagster is not, which takes longer than all of them, and the encoder counts words. The clock is
given in, so that all files come out the same to the byte but those of `LEFT_OUT`.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.distillation.periods import periods_of
from memory_pipeline.distillation.stage import stages_of
from memory_pipeline.embeddings import health
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.opening import generation
from memory_pipeline.embeddings.stage import settle_collections, switch_when_complete
from memory_pipeline.llm import cache
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import workspace_salt
from memory_pipeline.stages import Stage, bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.test_model import both
from memory_pipeline_tests.conftest import Entry, assistant, conversation, user, write_session
from memory_pipeline_tests.killing.story import MEMORY, marks, write_in_place
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.rows import WordEncoder, at, day_after, use_encoder, workspace

DAYS, PARTS = 30, 3
IMPORTED_ONCE = ("genai_prices", "pydantic_ai.models.openai", "qdrant_edge")
"""And not by each process that is forked."""
LEFT_OUT = ("index/", "answers/", "lake/ledger/")
"""What tells when a call was made and how long it took, and the files of the index, which has its own check."""
STEPS = ("read", *(f"stage {number}" for number in range(1, 9)), "distil", "review")
SUBJECTS = ("parcels", "invoices", "labels", "tariffs", "couriers", "depots", "returns", "stamps", "pallets", "routes")
ORDERS = (
    "Never delete {} without a backup in vault {}.",
    "Always run the checker of {} before release {}.",
    "From now on use library {}-{} for every report.",
    "I prefer tables to prose in notes on {} {}.",
)


@dataclass(frozen=True)
class Place:
    """Where the month happens, and where its model is."""

    folder: Path
    url: str
    days: int = DAYS

    @property
    def per_part(self) -> int:
        """Days of one run."""
        return self.days // PARTS

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def asked(self) -> Path:
        """Which requests the model had, a line each: by the name with which it answered."""
        return self.folder / "asked"

    def open(self) -> Workspace:
        model = {"model": "openai:gpt-5-mini", "base_url": self.url, "price": "1/3"}
        asked = {f"{role}_{name}": value for role in ("observer", "reflector") for name, value in model.items()}
        limits = {"daily_budget_usd": 1_000.0, "daily_budget_tokens": 1_000_000_000, "friction_min_points": 20}
        settings, lake = workspace(self.workspace, start_date=day_after(0), pending_limit=8, **asked, **limits)
        return Workspace(settings, lake)


@contextmanager
def model_of(folder: Path, days: int = DAYS) -> Iterator[Place]:
    """A model in a process of its own, so that the one that is killed is forked from one without threads."""
    for library in IMPORTED_ONCE:
        import_module(library)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        with suppress(BaseException), openai_server(lambda request: _answer(request, folder / "asked")) as server:
            os.write(write, server.url.encode())
            os.close(write)
            while True:
                time.sleep(60)
        os._exit(0)
    os.close(write)
    os.environ["OPENAI_API_KEY"] = "sk-test"
    with os.fdopen(read) as pipe:
        url = pipe.read()
    try:
        yield Place(folder, url, days)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _answer(request: Asked, asked: Path) -> Say:
    """As an observer, a reflector or a writer of friction patterns would, under a name that tells the request."""
    name = hashlib.sha256(json.dumps(request.body, sort_keys=True).encode()).hexdigest()[:16]
    with asked.open("a") as file:
        file.write(f"{name}\n")
    turn = Say("Title: What was asked for again.") if "<places-" in request.prompt else both(request)
    return Say(turn.text, tokens=turn.tokens, model=name)


def prepare(place: Place) -> None:
    """What lies there before the first run."""
    settings = place.open().settings
    workspace_salt(settings)  # random, so it must be the same for all
    for base in (COLLECTION, MESSAGES):
        generation(settings, base)  # likewise
    settings.memory_file.write_bytes(MEMORY.encode())
    settings.log_dir.mkdir()
    for number in range(place.days):
        settings.daily_log(day_after(number)).write_text(f"# My day\n\nBought milk, {number} litres.\n", "utf-8")


def person(place: Place, part: int) -> None:
    """Before the run: its days of sessions, and one of before that goes on; REVIEW.md and MEMORY.md by hand."""
    opened = place.open()
    for number in range(part * place.per_part, (part + 1) * place.per_part):
        _write(place, number)
    if part:
        grown = part * place.per_part - 3
        late = user(at("18:00", day_after(grown)), f"Never touch the archive of depot {grown} by hand.")
        _write(place, grown, late)
        marks("xx-xed")(opened.settings, opened.lake)
        memory = opened.settings.memory_file
        memory.write_bytes(memory.read_bytes() + f"\nBy hand, before run {part}.\n".encode())


def _write(place: Place, number: int, *late: Entry) -> None:
    path = write_session(place.sessions / f"said-{number}.jsonl", *_said(number), *late)
    ended = at("20:00", day_after(number)).timestamp()
    os.utime(path, (ended, ended))  # the catalogue has it


def _said(number: int) -> list[Entry]:
    start, subject = at("09:00", day_after(number)), SUBJECTS[number % len(SUBJECTS)]
    said: list[Entry] = []
    for order, words in enumerate(ORDERS):
        moment = start + timedelta(minutes=2 * order)
        said += [user(moment, words.format(subject, number)), assistant(moment + timedelta(minutes=1), "All right.")]
    return said + conversation(start + timedelta(minutes=30), users=3, topic=f"{subject} {number}")


def carry_out(place: Place, part: int, told: mmap.mmap | None = None, *, plain: bool = False) -> None:
    """What `memory run --all` brings up to date, in its order."""

    def step(number: int) -> None:
        if told:
            told[0] = number

    if plain:
        write_in_place()
        cache.AnswerCache.put = lambda self, key, answer: None  # type: ignore[method-assign]
    _count_words()
    opened, now = place.open(), now_of(place, part)
    step(0)
    catalogue = Catalogue(opened.lake, opened.settings)
    catalogue.refresh(find_sources([place.sessions]))
    days = catalogue.days()
    health.vector_problems(opened)  # makes days out of date whose vectors are lost
    for number, stage in enumerate(Stages.from_settings(opened.settings, catalogue, now).all(), 1):
        step(number)
        finish(stage, opened, days)
    switch_when_complete(opened)
    settle_collections(opened)
    step(STEPS.index("distil"))
    for level in stages_of(opened, now.date()):
        finish(level, opened, [period.last for period in periods_of(level.level, days, level.newest)])
    step(STEPS.index("review"))
    reconcile(opened, now)


def _count_words() -> None:
    """In place of a model that takes longer to load than the month takes to pass."""
    patch, encoder = pytest.MonkeyPatch(), WordEncoder()
    use_encoder(patch, encoder)
    patch.setattr(health, "encoder_of", lambda name: encoder)


def now_of(place: Place, part: int) -> datetime:
    """The morning after its last day."""
    return at("06:00", day_after((part + 1) * place.per_part))


def finish(stage: Stage, opened: Workspace, days: Iterable[date]) -> None:
    for day in days:
        bring_up_to_date(stage, opened.lake, day)


def stored_answers(place: Place) -> set[str]:
    """The names of the requests whose answers are kept."""
    files = (place.workspace / "answers").rglob("*.json")
    return {json.loads(path.read_bytes())["model"] for path in files}


def asked_so_far(place: Place) -> list[str]:
    return place.asked.read_text().split() if place.asked.exists() else []


def paid_twice(place: Place) -> list[str]:
    """What is wrong with the ledger: each answer is paid once, and no request is missing in it."""
    opened, wrong = place.open(), []
    rows = opened.lake.read("ledger").filter(~pl.col("cached").fill_null(False))
    calls = Counter(call.split("-")[0] for call in rows["call_id"])
    done = Counter(call.split("-")[0] for call in rows.filter(state="done")["call_id"])
    names = {json.loads(p.read_bytes())["model"]: p.stem for p in (place.workspace / "answers").rglob("*.json")}
    for name, times in Counter(asked_so_far(place)).items():
        key = names.get(name, "")[:16]
        if not key:
            wrong.append(f"request {name} was answered, and its answer is not kept")
        elif calls[key] < times:
            wrong.append(f"request {name} was sent {times} times and is {calls[key]} times in the ledger")
    wrong += [f"the ledger has {count} paid answers of {key}" for key, count in done.items() if count > 1]
    return wrong


def vectors_lacking(place: Place) -> list[str]:
    """What `memory run` would say of the index."""
    _count_words()
    return health.vector_problems(place.open())


def judge(place: Place) -> None:
    """The month is worth killing: there is something of everything."""
    opened = place.open()
    assert len(opened.lake.days("observations")) == place.days
    for table in ("observations", "reflections", "embeddings", "day_distillations", "proposals", "events"):
        assert opened.lake.read(table).height >= PARTS, table
    verdict = judge_integrity(opened.lake, opened.settings.memory_file)
    assert verdict.passed, verdict.offenders
    asked = asked_so_far(place)
    assert len(asked) == len(set(asked)) >= place.days, f"{len(asked)} requests"
    assert not paid_twice(place) and not vectors_lacking(place)
