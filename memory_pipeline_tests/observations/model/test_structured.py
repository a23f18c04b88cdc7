"""A day observed by a model whose answers are held to a schema: the same rows as in tags, and as well checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.estimate import estimate_day
from memory_pipeline.observations.model.facts import AnswerForm
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Asked, Fail, Say, Script, openai_server
from memory_pipeline_tests.rows import DAY, changed, say, workspace

TURNS = (
    "user: Never deploy parcels on a Friday, because nobody is there to watch it.",
    "assistant: Understood. The worker failed because of a stale lock file in /var/run/worker.pid.",
    "tool!: Error: exit 1",
    "user: From now on we use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)
RULE = "Parcels are never deployed on a Friday, because nobody is there to watch it."
CAUSE = "The worker failed because of a stale lock file in /var/run/worker.pid."
TAGGED = f"""<observations>
<segment from="#1" to="#12">
<title>Deploying parcels</title>
<narrative>The person laid down when to deploy.</narrative>
<facts>
* 🔴 rule (09:00) [#1] {RULE}
* 🟡 root_cause (09:01) [#2] {CAUSE}
</facts>
</segment>
</observations>
<current-task>Move to uv</current-task>
"""


def fact(text: str, place: int, **fields: Any) -> dict[str, Any]:
    return {
        "priority": "high",
        "kind": "rule",
        "time": "09:00",
        "places": [place],
        "text": text,
        "trace": [],
    } | fields


def answer(*facts: dict[str, Any], **fields: Any) -> str:
    part = {"from": 1, "to": 12, "title": "Deploying parcels", "narrative": "The person laid down when to deploy."}
    form = {"segments": [part | {"facts": list(facts)}], "current_task": "Move to uv", "suggested_response": ""}
    return json.dumps(form | {"used": [], "ended": []} | fields)


FACTS = (fact(RULE, 1), fact(CAUSE, 2, priority="medium", kind="root_cause", time="09:01"))


ORDER = {"observations": "observation_id", "segments": "segment_id"}


class Work:
    def __init__(self, folder: Path, script: Script, **more: Any) -> None:
        settings, self.lake = workspace(folder, observer_model="openai:scripted", model_retries=0, **more)
        say(self.lake, "s1", *TURNS)
        self.asked: list[Asked] = []
        self.script, self.settings = script, settings

    def run(self, **changes: Any) -> Lake:
        with openai_server(self.script) as server:
            settings = changed(self.settings, observer_base_url=server.url, **changes)
            self.workspace = Workspace(settings, self.lake)
            bring_up_to_date(ObservationsStage.from_workspace(self.workspace), self.lake, DAY)
            self.asked += server.requests
        return self.lake

    def rows(self, table: str) -> list[dict[str, Any]]:
        """But for the key of the answer, and for the basis, in which the address of the server is."""
        return self.lake.read(table).drop("answer", "basis", strict=False).sort(ORDER[table]).to_dicts()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield


def test_the_schema_is_sent_with_instructions_that_fit_it(tmp_path: Path) -> None:
    work = Work(tmp_path, answer(*FACTS))
    work.run()
    (asked,) = work.asked
    assert asked.schema and list(asked.schema["properties"]) == list(AnswerForm.model_fields)
    assert '{"segments": [' in asked.system and "<observations>" not in asked.system
    assert "{{" not in asked.system + asked.prompt
    AnswerForm.model_validate_json(answer(*FACTS))  # what the tests play is what is asked for


def test_the_same_content_gives_the_same_rows_as_in_tags(tmp_path: Path) -> None:
    structured, tagged = Work(tmp_path / "a", answer(*FACTS)), Work(tmp_path / "b", TAGGED)
    structured.run()
    tagged.run()
    for table in ("observations", "segments"):
        assert structured.rows(table) == tagged.rows(table) != []
    assert structured.lake.read("observations")["text"].to_list() == [RULE, CAUSE]
    assert structured.lake.read("segments")["parsed"].to_list() == [True]


def test_a_small_model_is_held_to_a_short_schema_and_asked_for_tags_where_it_is_refused(tmp_path: Path) -> None:
    held = Work(tmp_path / "a", answer(*FACTS))
    held.run(effective_context=16_000)
    assert held.asked and all(asked.schema and "<observations>" not in asked.system for asked in held.asked)
    full = Work(tmp_path / "b", answer(*FACTS))
    full.run()
    assert len(json.dumps(held.asked[0].schema)) < len(json.dumps(full.asked[0].schema))

    def refusing(asked: Asked) -> Fail | str:
        return Fail(400, "'response_format' is not supported") if asked.schema else TAGGED

    refused = Work(tmp_path / "c", refusing)
    refused.run(effective_context=16_000)
    assert refused.asked[-1].schema is None and "<observations>" in refused.asked[-1].system


def test_a_server_that_refuses_the_schema_breaks_nothing(tmp_path: Path) -> None:
    def refusing(asked: Asked) -> Fail | str:
        return Fail(400, "'response_format' is not supported") if asked.schema else TAGGED

    work = Work(tmp_path / "a", refusing)
    say(work.lake, "s2", TURNS[0], *TURNS)
    work.run(model_concurrency=1)
    assert [bool(asked.schema) for asked in work.asked] == [True, False, False]
    assert "<observations>" in work.asked[1].system
    assert work.lake.read("observations")["text"].sort().to_list() == sorted([RULE, CAUSE] * 2)
    assert work.lake.read("segments")["parsed"].to_list() == [True, True]


def test_answers_in_tags_that_are_kept_are_used(tmp_path: Path) -> None:
    """As of a workspace from before there were schemas."""
    work = Work(tmp_path, [Fail(400), TAGGED])
    work.run()
    rows = work.rows("observations")
    work.lake.replace("observations", work.lake.read("observations", [])[:0], [DAY])
    work.run()
    assert len(work.asked) == 2 and work.rows("observations") == rows


def test_an_answer_that_was_cut_is_asked_for_again_and_keeps_its_whole_facts(tmp_path: Path) -> None:
    whole = answer(*FACTS)
    cut = Say(whole[: whole.index("stale lock file")], finish="length")
    again = answer(fact("Nothing of it was worth it, said nobody.", 1))
    work = Work(tmp_path, [cut, Say(again[:20], finish="length")])
    work.run()
    assert [bool(asked.schema) for asked in work.asked] == [True, True]
    assert "Your last answer to this could not be used" in work.asked[1].prompt
    assert work.lake.read("observations")["text"].to_list() == [RULE]
    (segment,) = work.lake.read("segments").to_dicts()
    assert (segment["parsed"], segment["problem"]) == (False, "The JSON is truncated or damaged.")


def test_estimates_find_what_was_answered_in_either_form(tmp_path: Path) -> None:
    for name, script in (("schema", answer(*FACTS)), ("tags", [Fail(400), TAGGED])):
        work = Work(tmp_path / name, script)
        work.run()
        work.lake.replace("observations", work.lake.read("observations", [])[:0], [DAY])
        work.lake.replace("segments", work.lake.read("segments", [])[:0], [DAY])
        observer = ObservationsStage.from_workspace(work.workspace).observer
        assert isinstance(observer, LanguageModelObserver)
        found = estimate_day(work.lake, DAY, observer)
        assert (found.calls, found.answered, found.cost_usd) == (1, 1, 0.0), name


def test_an_estimate_counts_the_schema_and_the_longer_answer(tmp_path: Path) -> None:
    found = {}
    for name, base in (("schema", "openai:gpt-5-mini"), ("tags", "openai:gpt-5-mini -p")):
        settings, lake = workspace(tmp_path / name, observer_model=base, model_retries=0)
        say(lake, "s1", *TURNS)
        observer = ObservationsStage.from_workspace(Workspace(settings, lake)).observer
        assert isinstance(observer, LanguageModelObserver)
        found[name] = estimate_day(lake, DAY, observer)
    assert found["schema"].input_tokens - found["tags"].input_tokens > 400
    assert found["schema"].output_tokens - found["tags"].output_tokens == 170
