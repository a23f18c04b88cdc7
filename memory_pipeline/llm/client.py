"""Requests to a language model: cached answers are not paid again, and no day costs more than its budget."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from itertools import count
from typing import Protocol

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from memory_pipeline.llm.backends.command import CommandBackend
from memory_pipeline.llm.backends.provider import ProviderBackend, sees, takes_schema
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.llm.config import ModelConfig, fallback_model
from memory_pipeline.llm.errors import (
    ModelMisconfiguredError,
    ModelUnavailableError,
    RequestRefusedError,
    SetAsideError,
    TransientError,
)
from memory_pipeline.llm.ledger import Ledger, Reservation, Usage, cost_of
from memory_pipeline.llm.pace import Pace
from memory_pipeline.llm.request import Answer, Reply, Request
from memory_pipeline.settings import ModelSettings, variable
from memory_pipeline.text.tokens import PROSE, estimate
from memory_pipeline.workspace.workspace import Workspace

NotAnswered = RequestRefusedError | ModelUnavailableError | ModelMisconfiguredError
"""Errors for which a model gives no answer, except for the budget."""
IMAGE_TOKENS = 1600
"""Approximate maximum tokens that providers count for an image."""
DEAD_AFTER = 3
"""Number of consecutive unanswered requests to a reachable model after which it counts as dead. Each was retried as
often as configured, so a single hopeless request does not block all others."""
_MAX_WAIT = 120.0
_MARGIN = 1.2
_backoff = wait_exponential_jitter(initial=1, max=60, jitter=1)


class Backend(Protocol):
    """The backend protocol; `send` may be called from several threads at once."""

    def send(self, request: Request) -> Reply:
        """The model's answer. Raises `TransientError`, `RequestRefusedError` or `ModelMisconfiguredError`."""


def backend_of(config: ModelConfig) -> Backend:
    """The backend of a model: a command if the name has arguments, else a provider."""
    return CommandBackend(config) if config.is_command else ProviderBackend(config)


class Client:
    """One model, for one stage, in one run. Its methods may be called from several threads at once.

    Once the model is unreachable or misconfigured, every later call without a cached answer raises the same error at
    once, and waiting retries give up: a run over a year does not wait 365 times. If the model is misconfigured, refuses
    or is unreachable, the `fallback` is called, if there is one. `redact` is applied to answers and messages before
    they are stored. `sleep` (None: until stopped) waits between attempts.
    """

    def __init__(
        self,
        config: ModelConfig,
        workspace: Workspace,
        backend: Backend | None = None,
        redact: Callable[[str], str] = lambda text: text,
        sleep: Callable[[float], object] | None = None,
        stage: str = "observations",
        fallback: Client | None = None,
    ) -> None:
        self.fallback = fallback
        self.config = config
        self.cache = AnswerCache(answers_dir(workspace.settings))
        self.ledger = Ledger(workspace)
        self._settings = workspace.settings
        self._backend = backend or backend_of(config)
        self._redact = redact
        self._stage = stage
        self.model = redact(config.model)
        """The printable name of the model: a command may have a key among its arguments."""
        self._stopped = threading.Event()
        self._pace = Pace()
        self._sleep = sleep or self._stopped.wait
        self._verdict: ModelUnavailableError | ModelMisconfiguredError | None = None
        self._refuses_schema = False
        self._unanswered = 0
        self._mutex = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def complete(self, request: Request, for_day: date) -> Answer:
        """The model's answer, from the cache if possible.

        Raises `RequestRefusedError`, `BudgetReachedError`, and permanently `ModelUnavailableError` or
        `ModelMisconfiguredError`.
        """
        try:
            answer = self._complete_in_form(request, for_day)
        except (RequestRefusedError, ModelUnavailableError, ModelMisconfiguredError) as error:
            if self.fallback is None:
                raise
            return self._ask_fallback(self.fallback, request, for_day, error)
        return replace(answer, asked=self.model)

    def _ask_fallback(self, fallback: Client, request: Request, for_day: date, failed: NotAnswered) -> Answer:
        """The fallback's answer, with the reason for using it."""
        images = request.images if sees(fallback.config) else ()
        form = request if takes_schema(fallback.config) else request.forms[-1]
        try:
            answer = fallback.complete(replace(form, model=fallback.config.model, images=images), for_day)
        except (RequestRefusedError, ModelUnavailableError, ModelMisconfiguredError) as error:
            raise _combined_error(failed, error)(f"{failed} The fallback does not answer either: {error}") from None
        return replace(answer, instead=str(failed))

    def _complete_in_form(self, request: Request, for_day: date) -> Answer:
        """The answer to the form of the request that the model accepts: without its schema if that form is cached, or
        if the model refused one in this run."""
        plain = request.forms[-1]
        if not self.cache.get(request.key) and (self._refuses_schema or self.cache.get(plain.key)):
            return self._complete(plain, for_day)
        try:
            return self._complete(request, for_day)
        except RequestRefusedError as error:
            if plain is request or error.may_be_billed:
                raise
            answer = self._complete(plain, for_day)
            self._refuses_schema = True  # only the schema was refused
            return answer

    def _complete(self, request: Request, for_day: date) -> Answer:
        with self._mutex:
            turn = self._turns[request.key]
        with turn:  # concurrent equal requests become one call
            if known := self.cache.get(request.key):
                usage = Usage(known.input_tokens, known.output_tokens, 0.0)
                self.ledger.note_cached(self._stage, self.model, for_day, request.key, usage)
                return replace(known, key=request.key)
            try:
                return replace(self._retrying()(self._ask, request, for_day, count()), key=request.key)
            except TransientError as error:
                tries = self._settings.model_retries + 1
                told = (
                    f"The model did not answer in {tries} {'try' if tries == 1 else 'tries'}; the last time: "
                    f"{str(error).rstrip('.')}. Run it again later; answers are kept."
                )
                with self._mutex:
                    self._unanswered += 1
                if error.may_be_billed and self._unanswered < DEAD_AFTER:  # reachable, so it may answer other requests
                    raise SetAsideError(told) from None
                dead = ModelUnavailableError(told)
                self._stop(dead)
                raise dead from None
            except (ModelMisconfiguredError, ModelUnavailableError) as error:
                self._stop(error)
                raise

    def is_cached(self, request: Request) -> bool:
        """Whether the answer is cached."""
        return self.cache.known(request) is not None

    def worst_case(self, request: Request) -> Usage:
        """Maximum tokens and cost of the request."""
        # Bytes, not characters: a token has one character of Chinese but four of English.
        said = len(f"{request.system}{request.schema}{request.said}".encode())
        asked = math.ceil(_MARGIN * said / PROSE) + IMAGE_TOKENS * len(request.images)
        return Usage(asked, request.max_output_tokens, cost_of(self.config, asked, request.max_output_tokens))

    def stop(self) -> None:
        """Make calls of other threads give up before their next attempt, as the run is interrupted."""
        self._stop(ModelUnavailableError("The run was stopped. Run it again; answers are kept."))
        if self.fallback:
            self.fallback.stop()

    def _ask(self, request: Request, for_day: date, tries: Iterator[int]) -> Answer:
        """Make one attempt at the rate that all threads share. A retry has already waited."""
        with self._pace.turn(self._pause if next(tries) == 0 else None):
            try:
                answer = self._try(request, for_day)
            except TransientError as error:
                if error.is_too_many:
                    asked = error.retry_after
                    self._pace.slow_down(None if asked is None else min(max(asked, 0.0), _MAX_WAIT))
                raise
            self._pace.answered()
            self._unanswered = 0
            return answer

    def _try(self, request: Request, for_day: date) -> Answer:
        """Make one attempt with its own reservation and settlement."""
        self._raise_if_stopped()
        worst = self.worst_case(request)
        if worst.cost_usd is None and "daily_budget_usd" in self._settings.model_fields_set:
            raise ModelMisconfiguredError(
                f"{variable('daily_budget_usd')} limits what may be spent, but what {self.model!r} costs is not "
                f"known; set {self.config.role}_PRICE to USD per million tokens in and out, like 0.25/2, or 0/0."
            )
        place = self.ledger.reserve(self._stage, self.model, for_day, request.key, worst)
        began = time.monotonic()
        try:
            reply = self._backend.send(request)
        except (TransientError, RequestRefusedError, ModelMisconfiguredError) as error:
            error.args = (self._redact(str(error)),)
            may_be_billed = not isinstance(error, ModelMisconfiguredError) and error.may_be_billed
            self._settle_failed(place, worst if may_be_billed else None, began, str(error))
            raise
        except Exception as error:
            self._settle_failed(place, worst, began, type(error).__name__)
            raise
        answer = self._answer(request, reply, time.monotonic() - began)
        self.cache.put(request.key, answer)  # before settling, so that nothing is paid twice if killed in between
        usage = Usage(answer.input_tokens, answer.output_tokens, answer.cost_usd)
        self.ledger.settle(place, usage, answer.seconds)
        return answer

    def _settle_failed(self, place: Reservation, worst: Usage | None, began: float, error: str) -> None:
        tokens = worst.input_tokens if worst else 0
        usage = Usage(tokens, 0, cost_of(self.config, tokens, 0) if tokens else 0.0)
        self.ledger.settle(place, usage, time.monotonic() - began, error=error)

    def _answer(self, request: Request, reply: Reply, seconds: float) -> Answer:
        """The reply as an answer: redacted, with tokens and cost."""
        text = self._redact(reply.text.encode("utf-8", "replace").decode())  # lone surrogates cannot be stored
        asked, answered = reply.input_tokens, reply.output_tokens
        if asked is None:
            asked = tokens_of(request)
        if answered is None:
            answered = estimate(reply.text)
        cost = cost_of(self.config, asked, answered, reply.cache_read_tokens, reply.cache_write_tokens)
        return Answer(text, asked, answered, cost, seconds, truncated=reply.truncated, model=self._redact(reply.model))

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self._settings.model_retries + 1),
            wait=_wait,
            sleep=self._pause,
            reraise=True,
        )

    def _pause(self, seconds: float) -> None:
        self._raise_if_stopped()
        self._sleep(seconds)

    def _stop(self, verdict: ModelUnavailableError | ModelMisconfiguredError) -> None:
        with self._mutex:
            self._verdict = self._verdict or verdict
        self._stopped.set()
        self._pace.let_all_go()

    def _raise_if_stopped(self) -> None:
        if self._verdict:
            raise type(self._verdict)(str(self._verdict))


def client_of(
    config: ModelConfig, asked: ModelSettings, workspace: Workspace, redact: Callable[[str], str], stage: str
) -> Client:
    """The client of a model, with its fallback if these settings have one."""
    second = fallback_model(config, asked)
    fallback = Client(second, workspace, redact=redact, stage=stage) if second else None
    return Client(config, workspace, redact=redact, stage=stage, fallback=fallback)


def _combined_error(first: NotAnswered, second: NotAnswered) -> type[NotAnswered]:
    """The error if both models fail: retryable if one is unreachable, and only a refusal if the first refuses and the
    second can never be asked."""
    for kind in (SetAsideError, ModelUnavailableError):
        if isinstance(first, kind) or isinstance(second, kind):
            return kind
    return type(first)


def tokens_of(request: Request) -> int:
    """The approximate number of tokens of a request."""
    texts = (request.system, request.schema, request.said)
    return sum(map(estimate, texts)) + IMAGE_TOKENS * len(request.images)


def _wait(state: RetryCallState) -> float:
    """The delay that the provider requests, up to two minutes, else an increasing one."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, TransientError) else None
    return _backoff(state) if asked is None else min(max(asked, 0.0), _MAX_WAIT)
