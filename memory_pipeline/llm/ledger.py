"""Today's model calls and their cost: table `ledger`, one row per call, on the day of the call.

A call is written with its maximum cost before it is sent and with its true cost after, so concurrent calls, in however
many processes, cannot exceed the budget together. The row of a run that was killed stays `reserved` and counts in full:
the provider may have billed it. Rows `cached` are reused answers; they count nothing. Prices come with the package
`genai-prices` and are never downloaded.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.store import DamagedTableError
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import make_folder
from memory_pipeline.settings import variable
from memory_pipeline.workspace.workspace import Workspace

_LOCAL = ("ollama",)
_LISTED_AS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
    "google-cloud": "google",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers that the list knows by another name."""
BATCH_SHARE = 0.5
"""The share of the configured price that a batch costs: OpenAI, Anthropic and Google charge half for every model. If
the list has no price for batches, the ordinary one applies."""


def cost_of(
    config: ModelConfig,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
) -> float | None:
    """USD of one call with these tokens; None if the price is unknown, as for commands.

    Input tokens that the provider read from its own cache, or wrote into it, have prices of their own.
    """
    if config.price:
        share = BATCH_SHARE if config.in_batch else 1
        return share * (input_tokens * config.price[0] + output_tokens * config.price[1]) / 1_000_000
    provider, _, model = config.model.strip().removeprefix("gateway/").partition(":")
    if config.is_command or not model:
        return None
    if provider in _LOCAL:
        return 0.0
    from genai_prices import Usage, calc_price

    read = min(cache_read_tokens, input_tokens)
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=min(cache_write_tokens, input_tokens - read),
    )
    listed, context = _LISTED_AS.get(provider, provider), {"processing": "batch"} if config.in_batch else None
    try:
        return float(calc_price(usage, model, provider_id=listed, price_context=context).total_price)
    except LookupError:
        return None


LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.01
_ROUNDING = 1e-9  # of sums of floats


@dataclass(frozen=True)
class Usage:
    """Tokens and money of one call, as they are or at worst."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Reservation:
    """A call that is written down and not settled yet."""

    day: date
    call_id: str


class Ledger:
    """The ledger of a workspace, within its daily budget. Safe across threads and processes."""

    def __init__(self, workspace: Workspace, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = workspace.lake
        self._settings = workspace.settings
        self._now = now
        self._turn = threading.Lock()  # threads of one process need not poll the file
        self._noted: set[str] = set()

    def reserve(self, stage: str, model: str, for_day: date, key: str, worst: Usage) -> Reservation:
        """Write down a call that is about to be sent. Raises `BudgetReachedError`, writing nothing, if it may not."""
        return self.reserve_all(stage, model, [(for_day, key, worst)])[0]

    def reserve_all(self, stage: str, model: str, calls: Sequence[tuple[date, str, Usage]]) -> list[Reservation]:
        """Write down calls that are about to be sent together: the day that each is for, its key, its worst case.

        The first ones that the budget has room for. Raises `BudgetReachedError` if it has room for none.
        """
        now = self._now()
        day = day_of(now, self._settings.zone)
        ids = [f"{key[:16]}-{uuid.uuid4().hex[:12]}" for _, key, _ in calls]
        places: list[Reservation] = []

        def with_reserved(rows: pl.DataFrame) -> pl.DataFrame:
            places.clear()
            new: list[dict[str, Any]] = []
            rows = rows.filter(~pl.col("call_id").is_in(ids))  # a write whose answer was lost
            spent = _sum(rows)
            for (for_day, _, worst), call_id in zip(calls, ids, strict=True):
                try:
                    self._check(day, spent, worst)
                except BudgetReachedError:
                    if not places:
                        raise
                    break
                place = Reservation(day, call_id)
                places.append(place)
                row = self._row(place, stage, model, for_day, now, worst)
                new.append(row | {"cached": False, "state": "reserved"})
                paid = (spent.cost_usd or 0.0) + (worst.cost_usd or 0.0)
                spent = Usage(spent.input_tokens + worst.input_tokens, spent.output_tokens + worst.output_tokens, paid)
            return _with(rows, *new)

        self._update(day, with_reserved)
        return places

    def settle(
        self, place: Reservation, true: Usage, seconds: float, *, model: str = "", error: str | None = None
    ) -> None:
        """Replace the worst case by what the call has cost; with an `error` it is a failed one."""
        self.settle_all([(place, true, error)], seconds)

    def settle_all(self, calls: Iterable[tuple[Reservation, Usage, str | None]], seconds: float) -> None:
        """Settle calls, each with what it has cost and its error, if any."""
        by_day: dict[date, dict[str, dict[str, Any]]] = {}
        for place, true, error in calls:
            by_day.setdefault(place.day, {})[place.call_id] = {
                "input_tokens": true.input_tokens,
                "output_tokens": true.output_tokens,
                "cost_usd": true.cost_usd,
                "seconds": seconds,
                "state": "done" if error is None else "failed",
                "error": error,
            }
        for day, settled in by_day.items():
            self._update(day, partial(_with_settled, settled=settled))

    def note_cached(self, stage: str, model: str, for_day: date, key: str, answer: Usage) -> None:
        """Write down that a kept answer was used, once a day and key."""
        now = self._now()
        place = Reservation(day_of(now, self._settings.zone), f"{key[:16]}-cached")
        mark = f"{place.day} {place.call_id}"
        if mark in self._noted:
            return
        used = Usage(answer.input_tokens, answer.output_tokens, 0.0)
        row = self._row(place, stage, model, for_day, now, used) | {"seconds": 0.0, "cached": True, "state": "done"}
        self._update(place.day, lambda rows: None if place.call_id in rows["call_id"] else _with(rows, row))
        self._noted.add(mark)

    def require_room(self, worst: Usage) -> None:
        """Raise `BudgetReachedError` if such a call may not be made now."""
        day = day_of(self._now(), self._settings.zone)
        with self._turns(day):
            self._check(day, _sum(self._lake.read("ledger", [day])), worst)

    def spent(self) -> Usage:
        """The cost of today's calls, with the maximum cost of reserved ones."""
        with self._turns(day := day_of(self._now(), self._settings.zone)):
            return _sum(self._lake.read("ledger", [day]))

    def _check(self, day: date, spent: Usage, worst: Usage) -> None:
        self._check_one(day, "daily_budget_tokens", spent.tokens, worst.tokens, _tokens)
        if worst.cost_usd is not None:
            self._check_one(day, "daily_budget_usd", spent.cost_usd or 0.0, worst.cost_usd, _money)

    def _check_one(self, day: date, field: str, spent: float, next_call: float, shown: Callable[[float], str]) -> None:
        budget = float(getattr(self._settings, field))
        if spent + next_call <= budget + _ROUNDING:
            return
        allowed = f"{variable(field)} allows {shown(budget)} a day"
        if next_call > budget + _ROUNDING:
            raise BudgetReachedError(
                f"One call may take {shown(next_call)}, but {allowed}; raise it, or make calls smaller with a lower "
                f"{variable('chunk_tokens')}."
            )
        raise BudgetReachedError(
            f"The budget of {day} for models is used up: {shown(spent)} are spent or reserved, the next call may take "
            f"{shown(next_call)}, and {allowed}. The rest continues with tomorrow's budget, or now with a higher one."
        )

    def _update(self, day: date, change: Callable[[pl.DataFrame], pl.DataFrame | None]) -> None:
        with self._turns(day):
            self._lake.update("ledger", change, day)

    @contextmanager
    def _turns(self, day: date) -> Iterator[None]:
        """A lock on the ledger for the processes of this machine. Workers on others, who share a lake on object
        storage, are kept apart by `Lake.update`."""
        make_folder(self._settings.lake_dir)
        lock = FileLock(self._settings.lake_dir / "ledger.lock", timeout=LOCK_SECONDS, poll_interval=_POLL_SECONDS)
        with self._turn, lock:
            try:
                yield
            except DamagedTableError as error:
                path = self._lake.place("ledger", day)
                raise DamagedTableError(
                    f"{path} cannot be read. Delete it, or put a copy of it back: without it, what models "
                    f"have cost on {day} does not count to the budget."
                ) from error

    def _row(
        self, place: Reservation, stage: str, model: str, for_day: date, now: datetime, usage: Usage
    ) -> dict[str, Any]:
        return {
            "day": place.day,
            "call_id": place.call_id,
            "stage": stage,
            "model": model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "for_day": for_day,
            "asked_at": now,
        }


def _with(others: pl.DataFrame, *rows: dict[str, Any]) -> pl.DataFrame:
    return pl.concat([others, pl.DataFrame(rows, schema=TABLES["ledger"].columns)])


def _with_settled(rows: pl.DataFrame, settled: dict[str, dict[str, Any]]) -> pl.DataFrame | None:
    ours = pl.col("call_id").is_in(list(settled))
    # some are gone where somebody deleted the day's file meanwhile
    found = [row | settled[row["call_id"]] for row in rows.filter(ours).iter_rows(named=True)]
    return _with(rows.filter(~ours), *found) if found else None


def _sum(rows: pl.DataFrame) -> Usage:
    paid = rows.filter(pl.col("cached").fill_null(False).not_())
    return Usage(int(paid["input_tokens"].sum()), int(paid["output_tokens"].sum()), float(paid["cost_usd"].sum()))


def _tokens(count: float) -> str:
    return f"{count:,.0f} tokens"


def _money(usd: float) -> str:
    return f"{usd:.2f} USD" if usd >= 0.1 or not usd else f"{usd:.2g} USD"
