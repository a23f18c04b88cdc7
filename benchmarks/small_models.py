"""The entrance examination of real small models, from their recorded answers.

    python -m benchmarks.small_models              # examine the recorded answers of each model again
    python -m benchmarks.small_models --ask NAME   # ask the server at 127.0.0.1:8080, and record its answers as NAME

`small_models/NAME.json` has the answers of one model to the requests of `memory setup`, verbatim, with the seconds,
tokens and settings of the day on which it was asked. To examine them again, a server on loopback gives them in the
same order, so that prompts, parser and grounding are those of this checkout. With `--ask` the server is a real one, for
example llama.cpp's `llama-server`, found and set as `memory setup` does.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common import parser
from memory_pipeline.cli.examining import Trial, try_model
from memory_pipeline.cli.setup import with_choice
from memory_pipeline.llm.found import Choice, choices, loaded_context
from memory_pipeline.settings import Settings
from memory_pipeline_tests.llm.openai_server import Say, openai_server

FOLDER = Path(__file__).parent / "small_models"
TIMEOUT = 3_600.0
"""Seconds for one answer: a small machine that is busy writes a token a second."""


def main() -> None:
    arguments = parser("small_models", __doc__)
    arguments.add_argument("--ask", metavar="NAME")
    options = arguments.parse_args()
    os.environ["OPENAI_API_KEY"] = "none"  # a local server asks for none
    if options.ask:
        ask(options.ask)
        return
    print(f"{'model':<28}  {'recall':>6}  {'junk':>5}  {'seconds':>7}  result")
    for name, recorded in recordings():
        trial = examined_again(recorded)
        result = trial.result
        figures = f"{result.recall:>6.2f}  {result.junk:>5.2f}" if result else f"{'–':>6}" * 2
        print(f"{name:<28}  {figures}  {recorded['seconds']:>7.0f}  {trial.failure or 'passed'}")


def recordings() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.json")):
        yield path.stem, json.loads(path.read_text("utf-8"))


def examined_again(recorded: dict[str, Any]) -> Trial:
    """The examination of a model whose answers were recorded."""
    turns = [Say(text, finish) for text, finish in recorded["answers"]]
    with openai_server(turns) as server, tempfile.TemporaryDirectory() as folder:
        choice = Choice("recorded", "server", "recorded", "openai:recorded", base_url=server.url, price="0/0")
        return try_model(_settings(Path(folder), choice, recorded["context"]))


def ask(name: str) -> None:
    """Examine the model of the server that answers, and record its answers."""
    choice = next((found for found in choices() if found.kind == "server"), None)
    if choice is None:
        sys.exit("No server answers at a default port of Ollama, LM Studio, llama.cpp or vLLM.")
    context = choice.context or loaded_context(choice)
    with tempfile.TemporaryDirectory() as folder:
        trial = try_model(_settings(Path(folder), choice, context))
    result = trial.result.model_dump(mode="json") if trial.result else None
    used = trial.used
    recorded = {
        "model": choice.model,
        "context": context,
        "seconds": round(trial.seconds, 1),
        "tokens_in": used.input_tokens if used else None,
        "tokens_out": used.output_tokens if used else None,
        "failure": trial.failure,
        "result": result,
        "answers": [[answer.text, "length" if answer.truncated else "stop"] for answer in trial.answers],
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(trial.failure or "passed", result)


def _settings(folder: Path, choice: Choice, context: int | None) -> Settings:
    settings = Settings(workspace=folder / "workspace", model_timeout=TIMEOUT)
    return with_choice(settings, replace(choice, context=context))


if __name__ == "__main__":
    main()
