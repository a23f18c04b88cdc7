"""A decision's trace on its way: kept as far as it was said, shown by `memory why` and to the reflector."""

import re
from pathlib import Path

import pytest

from memory_pipeline.cli.show import why
from memory_pipeline.observations.flags import COMPLETED
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Asked, openai_server
from memory_pipeline_tests.rows import DAY, MissingEncoder, say

SAID = "Keep the sessions of parcels in Postgres instead of Redis; I want one thing to back up."
OBSERVED = """<observations><segment><title>Sessions</title><narrative>Sessions moved.</narrative><facts>
* 🔴 decision [#1] The sessions of parcels are kept in Postgres instead of Redis.
  trace: logins were lost at every deploy -> Kafka was slow -> sessions in Postgres at 03:33 -> one thing to back up
* ✅ [#3] The table `sessions` is in Postgres.
</facts></segment></observations><current-task>✅ sessions in Postgres</current-task>"""
REFLECTED = (
    "* 🔴 System Architecture | decision [o1] Sessions of parcels are in Postgres, not Redis: one thing to back up."
)


def test_a_trace_is_checked_stored_shown_and_reflected_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(asked: Asked) -> str:
        return REFLECTED if "long-term memory" in asked.system else OBSERVED

    with openai_server(script) as server:
        for role in ("OBSERVER", "REFLECTOR"):
            monkeypatch.setenv(f"{role}_MODEL", "openai:scripted")
            monkeypatch.setenv(f"{role}_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        workspace = Workspace.open(load_settings())
        asked_for = [f"user: Part {n} is next, please." for n in range(5)]
        lost = "assistant: The logins were lost at every deploy, as Redis has no volume."
        made = "assistant: The table `sessions` is in Postgres now."
        say(workspace.lake, "s1", f"user: {SAID}", lost, made, *asked_for)
        bring_up_to_date(ObservationsStage.from_workspace(workspace), workspace.lake, DAY)
        reflections = ReflectionsStage.from_workspace(workspace)
        reflections.encoder = MissingEncoder()  # type: ignore[assignment]
        bring_up_to_date(reflections, workspace.lake, DAY)
        prompt = server.requests[-1].prompt
    decision, done = workspace.lake.read("observations", [DAY]).sort("kind").to_dicts()
    # what nobody said is no step, and a time that nobody gave is taken out
    trace = "logins were lost at every deploy → sessions in Postgres → one thing to back up"
    assert (decision["trace"], done["trace"]) == (trace, None)
    assert (done["kind"], done["priority"], done["flags"]) == ("progress", "medium", [COMPLETED])
    assert decision["flags"] == []
    assert workspace.lake.read("segments", [DAY])["current_task"].to_list() == [None]
    assert f"instead of Redis. (trace: {trace})\n" in prompt
    assert re.search(r"🟡 progress, the agent: \(done\) The table `sessions`", prompt)
    (line,) = workspace.lake.read("reflections", [DAY]).to_dicts()
    assert line["text"].endswith("one thing to back up.")  # its trace carries the reason
    for shown in (decision["observation_id"], line["reflection_id"]):
        why(shown, False)
        assert f"trace: {trace}" in capsys.readouterr().out
