"""`memory setup`: lists the available models, examines one and sets it; and the same question after `memory run`."""

import os
import shutil
import sys
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated

import typer
from pydantic import ValidationError

from memory_pipeline.cli.console import FAILED, MISUSED, err, fail, printable, say, say_pair
from memory_pipeline.cli.estimate import Outlook, estimate_outlook
from memory_pipeline.cli.examining import WHAT_ELSE, Trial, examined
from memory_pipeline.cli.settings import setting_rows, shown, write
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.llm.agents import BY_NAME
from memory_pipeline.llm.config import NO_MODEL
from memory_pipeline.llm.found import Choice, choices, loaded_context
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import ObserverSettings, Settings, variable
from memory_pipeline.settings.loading import missing_extras
from memory_pipeline.settings.model_names import model_name
from memory_pipeline.settings.sources import nested, settings_of

LEAST_CONTEXT = 8_000
"""Minimum tokens of `effective_context`."""
UNCHANGED = "Nothing was changed."
FILE, NEVER = "model_offer", "never"
"""The file in the workspace with the answer: `never`, or the day of a "not now"."""
ASK_AGAIN = timedelta(days=30)
"""The time after which "not now" is asked again."""


def setup(
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="An agent, provider:model, or a command with its arguments."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; examine the model of --model and set it.")] = False,
    exam: Annotated[
        str | None, typer.Option("--exam", metavar="NAME", help="Only examine this model and store the result.")
    ] = None,
) -> None:
    """Choose a model, examine it and set it.

    Shows the agents, keys and local servers of this machine with the cost of each, asks for one, examines it on a
    bundled session and sets it, unless it is worse than no model. Without a terminal it shows the choices; --yes
    --model NAME then sets one.
    """
    if yes and not model:
        raise fail("--yes needs --model NAME.", MISUSED)
    settings = settings_of_call()
    found = choices()
    if exam:
        choice = _choice_named(exam, found)
        is_set = choice.model == settings.observer.model
        _examine(settings, choice, settings if is_set else with_choice(settings, choice), "")
        return
    if yes and model:
        set_up(settings, _choice_named(model, found))
        return
    offered = [_choice_named(model, found)] if model else found
    outlook = show_choices(settings, offered)
    if not offered:
        return
    if not _is_at_terminal():
        say(f"\nNothing was set. `memory setup --yes --model {model or 'NAME'}` examines one and sets it.")
        return
    chosen = ask_which(offered, "Which one? Enter its number, or press Enter for none")
    if isinstance(chosen, Choice):
        set_up(settings, chosen, outlook)
    else:
        say(UNCHANGED)


def offer_model(settings: Settings, today: date) -> None:
    """Ask which of the available models to set; do nothing in a script, or if the question was answered."""
    if settings.observer.model or not _is_at_terminal() or not _is_due(settings, today):
        return
    offered = [choice for choice in choices() if not choice.missing]
    if not offered:
        return
    say("\nA model would also find facts that nobody stated explicitly. This machine has:", "bold")
    outlook = show_choices(settings, offered)
    question = f"Use one? Enter its number, press Enter for not now, or type `{NEVER}`"
    answer = ask_which(offered, question, NEVER)
    if isinstance(answer, Choice):
        set_up(settings, answer, outlook)
        return
    path = settings.workspace / FILE
    content = f"{answer or today.isoformat()}\n".encode()
    write_atomically(path, content, expected=path.read_bytes() if path.exists() else None, backups=None)
    say("`memory setup` sets one at any time.", "dim")


def _is_at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _is_due(settings: Settings, today: date) -> bool:
    path = settings.workspace / FILE
    answer = path.read_text("utf-8").strip() if path.exists() else ""
    if answer == NEVER:
        return False
    try:
        return today - date.fromisoformat(answer) >= ASK_AGAIN
    except ValueError:  # not answered yet, or edited by hand
        return True


def _choice_named(name: str, found: list[Choice]) -> Choice:
    """The listed choice with that name, else a model with only that name."""
    for choice in found:
        if name in (choice.name, choice.model):
            return choice
    if name in BY_NAME:
        return Choice(name, "agent", "not found on PATH", BY_NAME[name].command)
    try:
        return Choice(name, "named", "named", model_name(name))
    except ValueError as error:
        known = ", ".join([*BY_NAME, *(choice.name for choice in found if choice.name not in BY_NAME)])
        raise fail(f"--model {name!r}: {error}, or one of: {known}.", MISUSED) from None


def show_choices(settings: Settings, offered: list[Choice]) -> Outlook | None:
    """Print the current model and all choices with their costs. Returns the data for the costs."""
    if settings.observer.model:
        row = next(row for row in setting_rows(settings) if row["key"] == "observer.model")
        say_pair("model", f"{row['value']} ({row['from']})")
    else:
        say_pair("model", NO_MODEL)
    if not offered:
        say("\nNo agent, key or local server was found. Any one of these will do:")
        say(f"  a coding agent that is logged in: {', '.join(BY_NAME)}")
        say("  a key in the environment, such as ANTHROPIC_API_KEY or OPENAI_API_KEY")
        say("  a local server: Ollama, LM Studio, llama.cpp or vLLM at its usual port")
        say("Then run `memory setup` again. For another model: `memory setup --model NAME`.")
        return None
    found = estimate_outlook(settings)
    outlook = found if isinstance(found, Outlook) else None
    say(f"\n{outlook.tokens() if outlook else found}")
    say(
        "Your sessions are sent, redacted, to the model that you choose; with a local server they stay on this machine."
    )
    width = max(len(choice.name) for choice in offered) + 2
    for number, choice in enumerate(offered, 1):
        say(f"\n{number:>3}  {choice.name:<{width}}{choice.evidence}")
        if choice.missing:
            say(f"     {'':<{width}}{choice.missing}", "yellow")
        if outlook:
            say(f"     {'':<{width}}{outlook.cost(with_choice(settings, choice))}")
    return outlook


def ask_which(offered: list[Choice], question: str, *words: str) -> Choice | str:
    """The choice that the user selects by its number, else one of the words; empty after just Enter."""
    while True:
        said: str = typer.prompt(f"\n{question}", default="", show_default=False).strip().lower()
        if said in ("", *words):
            return said
        if said.isdecimal() and 1 <= int(said) <= len(offered):
            return offered[int(said) - 1]
        expected = "".join(f"`{word}`, " for word in words)
        err.print(f"Expected a number from 1 to {len(offered)}, {expected}or just Enter.", style="yellow")


def set_up(settings: Settings, choice: Choice, outlook: Outlook | None = None) -> None:
    """Examine the model and set it; change nothing if that fails. With `outlook`, print how long a day and the backlog
    take at the speed of its answer."""
    known = settings_of(Settings)
    if above := [known[key].variable for key in _values(settings, choice) if os.environ.get(known[key].variable)]:
        raise fail(f"{', '.join(above)} in this environment would take precedence; unset it first.", MISUSED)
    _refuse_small(choice, choice.context)
    if choice.kind == "agent" and not shutil.which(choice.name):
        raise fail(f"{choice.name} is not on PATH; install it first. {UNCHANGED}")
    _examine(settings, choice, with_choice(settings, choice), UNCHANGED, outlook)
    context = choice.context or loaded_context(choice)
    _refuse_small(choice, context)
    values = _values(settings, replace(choice, context=context))
    path = write(values)
    say("")
    for key, value in values.items():
        if value is not None:
            say_pair(key, shown(known[key], value))
    say(f"{path} now has this setting; `memory settings unset observer.model` removes it.")
    say("`memory run` observes the latest days with it, `memory run --all` the rest, within the daily budget.")


def _examine(settings: Settings, choice: Choice, asked: Settings, then: str, outlook: Outlook | None = None) -> None:
    """Examine the model with the settings `asked`. Raises `typer.Exit` if it fails, ending the message with `then`."""
    if missing := missing_extras(asked):
        raise fail(" ".join(missing))
    err.print(f"Asking {choice.name} about a bundled example; nothing of yours is sent.", style="dim")
    trial = examined(asked)
    if trial.result:
        if used := trial.used:
            cost = "price not known" if used.cost_usd is None else f"{used.cost_usd:.4f} USD"
            tokens = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
            say(f"It took {trial.seconds:.0f} seconds: {tokens}, {cost}.")
        if outlook and trial.result.tokens_per_second:
            say(f"{outlook.time(trial.result.tokens_per_second).capitalize()}.")
        say(f"{choice.name} {trial.result.sentence}")
    if trial.failure:
        raise _failed(settings, choice, trial, then)


def _refuse_small(choice: Choice, context: int | None) -> None:
    """Refuse a server whose context is smaller than the smallest request."""
    if context is not None and context < LEAST_CONTEXT:
        raise fail(
            f"{choice.evidence} runs {choice.name} with a context of {context:,} tokens; at least "
            f"{LEAST_CONTEXT:,} are needed, 32,000 are better. Start it with more (Ollama: "
            f"OLLAMA_CONTEXT_LENGTH=32768). {UNCHANGED}"
        )


def _failed(settings: Settings, choice: Choice, trial: Trial, then: str) -> typer.Exit:
    hint = f" ({choice.missing})" if choice.missing else ""
    if choice.kind == "server" and "no answer within" in trial.failure:
        hint = f" (a slow machine needs more: `memory settings set model_timeout {settings.model_timeout * 4:.0f}`)"
    instead = WHAT_ELSE if trial.result else ""
    return fail(" ".join(filter(None, [f"{printable(trial.failure)}{hint}", instead, then])), FAILED)


def _values(settings: Settings, choice: Choice) -> dict[str, str | None]:
    """The settings to write, by key. Address and price of the previous model are removed; manual settings for this one
    are kept."""
    values: dict[str, str | None] = {"observer.model": choice.model}
    own = {"observer.base_url": choice.base_url, "observer.price": choice.price}
    if choice.kind != "server" and settings.observer.model in (None, choice.model):
        own.pop("observer.price")
        if choice.kind == "named":
            own.pop("observer.base_url")
    if choice.context is not None:
        own["effective_context"] = str(choice.context)
    return values | own


def with_choice(settings: Settings, choice: Choice) -> Settings:
    """The settings with this choice."""
    values = nested(_values(settings, choice))
    try:
        observer = ObserverSettings(**(settings.observer.model_dump(exclude_unset=True) | values.pop("observer")))
    except ValidationError as error:
        raise fail(f"{variable('observer.model')}={choice.name!r}: {error.errors()[0]['msg']}", MISUSED) from None
    return settings.model_copy(update={"observer": observer} | {key: int(value) for key, value in values.items()})
