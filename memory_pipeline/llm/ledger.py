"""The model calls of a day and their cost: table `ledger`, one row per call, on the day of the call.

A call is stored with its maximum cost before it is sent and with its true cost afterwards, so concurrent calls in any
number of processes cannot exceed the budget. The row of a killed run stays `reserved` and counts in full, as the
provider may have billed it. `cached` rows are reused answers and cost nothing. Prices come with the package
`genai-prices` and are never downloaded.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
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
_NAMES_IN_PRICE_LIST = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
    "google-cloud": "google",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers that have another name in the price list."""


def cost_of(
    config: ModelConfig,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
) -> float | None:
    """USD of one call with these tokens; None if the price is unknown, as for commands.

    Input tokens that the provider read from its cache, or wrote into it, have separate prices.
    """
    if config.price:
        return (input_tokens * config.price[0] + output_tokens * config.price[1]) / 1_000_000
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
    listed = _NAMES_IN_PRICE_LIST.get(provider, provider)
    try:
        return float(calc_price(usage, model, provider_id=listed).total_price)
    except LookupError:
        return None


LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.01
_ROUNDING = 1e-9  # rounding errors of sums


@dataclass(frozen=True)
class Usage:
    """The actual or maximum tokens and cost of a call."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Reservation:
    """A stored call that is not settled yet."""

    day: date
    call_id: str


class Ledger:
    """The ledger of a workspace, within its daily budget. Safe across threads and processes."""

    def __init__(self, workspace: Workspace, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = workspace.lake
        self._settings = workspace.settings
        self._now = now
        self._turn = threading.Lock()  # so that threads of one process do not poll the file
        self._noted: set[str] = set()

    def reserve(self, stage: str, model: str, for_day: date, key: str, worst: Usage) -> Reservation:
        """Store a call that is about to be sent. Raises `BudgetReachedError`, storing nothing, if the budget does not
        allow it."""
        now = self._now()
        place = Reservation(day_of(now, self._settings.zone), f"{key[:16]}-{uuid.uuid4().hex[:12]}")
        row = self._row(place, stage, model, for_day, now, worst) | {"cached": False, "state": "reserved"}

        def with_reserved(rows: pl.DataFrame) -> pl.DataFrame:
            others = rows.filter(pl.col("call_id") != place.call_id)  # from a write whose response was lost
            self._require_room(place.day, _sum(others), worst)
            return _with_row(others, row)

        self._update(place.day, with_reserved)
        return place

    def settle(self, place: Reservation, true: Usage, seconds: float, *, error: str | None = None) -> None:
        """Replace the maximum cost by the true cost; with an `error` the call failed."""
        settled = {
            "input_tokens": true.input_tokens,
            "output_tokens": true.output_tokens,
            "cost_usd": true.cost_usd,
            "seconds": seconds,
            "state": "done" if error is None else "failed",
            "error": error,
        }

        def with_settled(rows: pl.DataFrame) -> pl.DataFrame | None:
            is_ours = pl.col("call_id") == place.call_id
            found = rows.filter(is_ours).to_dicts()  # none if the day's file was deleted meanwhile
            return _with_row(rows.filter(~is_ours), found[0] | settled) if found else None

        self._update(place.day, with_settled)

    def note_cached(self, stage: str, model: str, for_day: date, key: str, answer: Usage) -> None:
        """Record the use of a cached answer, once per day and key."""
        now = self._now()
        place = Reservation(day_of(now, self._settings.zone), f"{key[:16]}-cached")
        mark = f"{place.day} {place.call_id}"
        if mark in self._noted:
            return
        used = Usage(answer.input_tokens, answer.output_tokens, 0.0)
        row = self._row(place, stage, model, for_day, now, used) | {"seconds": 0.0, "cached": True, "state": "done"}
        self._update(place.day, lambda rows: None if place.call_id in rows["call_id"] else _with_row(rows, row))
        self._noted.add(mark)

    def _require_room(self, day: date, spent: Usage, worst: Usage) -> None:
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
        with self._locked(day):
            self._lake.update("ledger", change, day)

    @contextmanager
    def _locked(self, day: date) -> Iterator[None]:
        """A lock on the ledger for the processes of this machine. Workers on other machines that share a lake in object
        storage are coordinated by `Lake.update`."""
        make_folder(self._settings.lake_dir)
        lock = FileLock(self._settings.lake_dir / "ledger.lock", timeout=LOCK_SECONDS, poll_interval=_POLL_SECONDS)
        with self._turn, lock:
            try:
                yield
            except DamagedTableError as error:
                path = self._lake.place("ledger", day)
                raise DamagedTableError(
                    f"{path} cannot be read. Delete it, or restore a copy of it: without it, the cost of models on "
                    f"{day} does not count towards the budget."
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


def _with_row(others: pl.DataFrame, row: dict[str, Any]) -> pl.DataFrame:
    return pl.concat([others, pl.DataFrame([row], schema=TABLES["ledger"].columns)])


def _sum(rows: pl.DataFrame) -> Usage:
    paid = rows.filter(pl.col("cached").fill_null(False).not_())
    return Usage(int(paid["input_tokens"].sum()), int(paid["output_tokens"].sum()), float(paid["cost_usd"].sum()))


def _tokens(count: float) -> str:
    return f"{count:,.0f} tokens"


def _money(usd: float) -> str:
    return f"{usd:.2f} USD" if usd >= 0.1 or not usd else f"{usd:.2g} USD"
