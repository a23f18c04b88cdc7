"""`memory admin batch`: sends the observer's requests in batches at half the price."""

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Annotated

import typer

from memory_pipeline.cli.choosing import EVERYTHING, FIRST, LAST, SESSIONS, days_in, progress, sessions_of_call, span_of
from memory_pipeline.cli.console import fail, one_sentence, say
from memory_pipeline.days import today
from memory_pipeline.defs.runs import only_run
from memory_pipeline.llm.batch_file import OpenBatch, batch_path, read_batch_file
from memory_pipeline.llm.batching import Asked, Batching, Chosen, StillOut, TakenIn
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.errors import BudgetReachedError, RequestRefusedError, TransientError
from memory_pipeline.observations.batching import missing_requests
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.planning import Stages
from memory_pipeline.redaction import redactor_of
from memory_pipeline.settings import Settings
from memory_pipeline.settings.extras import missing_extras
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace

LATER = "Run `memory admin batch` again later"


def batch(
    first: FIRST = None,
    last: LAST = None,
    everything: EVERYTHING = False,
    sessions: SESSIONS = None,
    yes: Annotated[
        bool, typer.Option("--yes", help=("Do not ask for confirmation; the daily budget still applies."))
    ] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the pending batch at the provider.")] = False,
) -> None:
    """Observe through the provider's batch API, at half the price.

    Stores the answers of the pending batch, if they have arrived, and sends the next batch: for each session of past
    days the next unanswered request. It never waits; run it again until nothing is missing, then `memory run` uses the
    answers at no cost. Reflections are not requested in batches.
    """
    span = span_of(first, last, everything)
    settings, catalogue = sessions_of_call(sessions)
    config = observer_model(settings)
    if not config:
        raise fail("No model is set for observations (OBSERVER_MODEL); choose one with `memory setup`.")
    if missing := missing_extras(settings):
        raise fail(" ".join(missing))
    workspace = Workspace(settings, catalogue.lake)
    batching = Batching(workspace, config, redactor_of(settings).redact)
    with one_sentence(BudgetReachedError, RequestRefusedError, TransientError), only_run(settings):
        if cancel:
            _cancel(settings, batching)
            return
        found = batching.take_in()
        if isinstance(found, StillOut):
            _print_pending(settings, found)
            return
        if found:
            _print_received(found)
        stages = Stages.from_settings(settings, catalogue, datetime.now(UTC))
        observer = stages.observations.observer
        if not isinstance(observer, LanguageModelObserver):
            raise fail("The model failed its examination and is not used; `memory status` says why.")
        days = [day for day in days_in(catalogue, span, everything) if day < today(settings.zone)]
        refused = read_batch_file(settings).refused
        chosen = batching.choose(_pending_requests(stages, observer, days, refused))
        if not chosen.asked:
            say(f"Of {len(days)} past days none has a request for a batch. `memory run` uses the answers.")
        elif _is_confirmed(settings, batching, observer, chosen, yes):
            sent = batching.send(chosen.asked)
            say(f"Sent batch {sent.name}, {_batch_size(sent)}. The answers arrive within a day. {LATER}.")


def _pending_requests(
    stages: Stages, observer: LanguageModelObserver, days: list[date], refused: dict[str, str]
) -> Iterator[Asked]:
    lake = stages.sessions.lake
    with progress() as bar:
        task = bar.add_task("looking at days", total=len(days))
        for day in days:
            bring_up_to_date(stages.sessions, lake, day)
            if not is_current(stages.observations, lake, day):
                yield from missing_requests(lake, day, observer, refused)
            bar.advance(task)


def _print_pending(settings: Settings, out: StillOut) -> None:
    sent = f"{_batch_size(out.batch)}, sent {out.batch.sent_at.astimezone(settings.zone):%Y-%m-%d %H:%M}"
    if out.unclear:
        say(
            f"The id of a batch of {sent}, was lost in an interruption. It may be one of these at the provider, "
            f"which is known once they have ended: {', '.join(out.unclear)}. {LATER}; to abandon it, delete "
            f"{batch_path(settings)}."
        )
        return
    say(f"Batch {out.batch.name}, {sent}, is not done yet. {LATER}.")


def _print_received(taken: TakenIn) -> None:
    if taken.failed:
        raise fail(
            f"Batch {taken.batch.name}, {_batch_size(taken.batch)}, failed as a whole and cost nothing: {taken.failed} "
            "If it was too large, name fewer days with --from and --to."
        )
    cost = "price not known" if taken.cost.cost_usd is None else f"{taken.cost.cost_usd:.4f} USD"
    say(
        f"Received batch {taken.batch.name}, {taken.answered} of {len(taken.batch.requests)} requests answered, "
        f"{taken.cost.input_tokens:,} tokens in, {taken.cost.output_tokens:,} out, {cost}."
    )
    _print_reasons(taken.later, "not answered; they are in the next batch")
    _print_reasons(taken.refused, "refused; `memory run` sends them individually")


def _print_reasons(reasons: Counter[str], what: str) -> None:
    for reason, count in reasons.most_common():
        say(f"  {count} {what}: {reason}", "yellow")


def _is_confirmed(
    settings: Settings, batching: Batching, observer: LanguageModelObserver, chosen: Chosen, yes: bool
) -> bool:
    """Print what would be sent and its cost, and ask for confirmation."""
    about, most = batching.expected(chosen.asked), chosen.at_most
    cost = (
        "The price of the model is not known."
        if about.cost_usd is None or most.cost_usd is None
        else f"At batch prices this costs about {about.cost_usd:.4f} USD, at most {most.cost_usd:.4f}."
    )
    days = len({one.for_day for one in chosen.asked})
    say(
        f"One batch to {observer.client.model}: {len(chosen.asked)} requests of {days} days, about "
        f"{about.input_tokens:,} tokens in and {about.output_tokens:,} out. {cost} `memory run` would send the same "
        f"requests."
    )
    if not chosen.is_all:
        say(f"The rest must wait: it exceeds today's budget ({_budget(settings)}) or the size of a batch.")
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("Nothing was sent. `memory admin batch --yes` skips the confirmation.")
        return False
    return typer.confirm("Send it?", default=False)


def _budget(settings: Settings) -> str:
    return f"{settings.daily_budget_usd:.2f} USD, {settings.daily_budget_tokens:,} tokens"


def _batch_size(batch: OpenBatch) -> str:
    return f"{len(batch.requests)} requests to {batch.model}"


def _cancel(settings: Settings, batching: Batching) -> None:
    out = batching.cancel()
    if not out:
        say("No batch is pending.")
    elif not out.handle:
        say(
            f"The id of the batch is not known, so it cannot be cancelled. To abandon it, delete "
            f"{batch_path(settings)}."
        )
    else:
        say(f"Batch {out.name} is being cancelled. `memory admin batch` collects the answers that were finished.")
