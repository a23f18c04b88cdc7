"""What real harnesses write is what was said to them, and the sensor finds it.

Each is run at the version that package.json names, against a model that answers from a script: a prompt with a tool
call, a second one with a command that fails, one that the model refuses, one that it answers after a breakdown, a
compaction, and a last prompt. Every prompt is a process of its own that resumes the session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import dagster as dg
import pytest

from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.loaded import session_sensor
from memory_pipeline_tests.real_agents.conftest import (
    AFTER_COMPACTION,
    BEFORE_COMPACTION,
    BREAKDOWN,
    REFUSAL,
    SUMMARY,
    Conversation,
    spoken,
)
from memory_pipeline_tests.rows import FakeEncoder, use_encoder

SAID = BEFORE_COMPACTION + AFTER_COMPACTION


def every_text_is_read_once_in_its_order_and_its_role(conversation: Conversation) -> None:
    session = conversation.session()
    assert session.harness == conversation.harness.name
    said = [(conversation.harness.typed if role == "user" else role, text) for role, text in SAID]
    assert [(message.role, message.text) for message in spoken(session)] == said


def nothing_is_unknown_or_broken(conversation: Conversation) -> None:
    session = conversation.session()
    assert session.problems == ()
    assert session.unknown_records == {}


def tool_calls_stand_with_their_outputs(conversation: Conversation) -> None:
    tools = [message for message in conversation.session().messages if message.role == "tool"]
    name = conversation.harness.shell_tool
    assert [(message.tool_name, message.is_error) for message in tools] == [
        (name, False),
        (name, False),
        (name, False),
        (name, True),
    ]
    worked, failed = tools[:2], tools[2:]
    assert "echo blue parcels" in worked[0].text
    assert "blue parcels" in worked[1].text and "echo" not in worked[1].text
    assert "echo broken parcels; exit 3" in failed[0].text
    assert "broken parcels" in failed[1].text and "echo" not in failed[1].text


def the_summary_was_said_by_nobody(conversation: Conversation) -> None:
    holders = [message.role for message in conversation.session().messages if SUMMARY in message.text]
    assert holders == ["injected"]


def errors_of_the_model_are_no_words_of_it(conversation: Conversation) -> None:
    for message in spoken(conversation.session()):
        assert REFUSAL not in message.text
        assert BREAKDOWN not in message.text


def it_stands_where_and_when_it_was_said(conversation: Conversation) -> None:
    session = conversation.session()
    assert session.cwd == str(conversation.harness.cwd)
    assert session.session_id
    second = timedelta(seconds=1)  # some times are whole seconds
    for message in session.messages:
        assert conversation.began - second <= message.said_at <= conversation.ended + second
        assert conversation.began - second <= message.written_at <= conversation.ended + second


def the_compaction_holds_what_the_model_no_longer_sees(conversation: Conversation) -> None:
    session = conversation.session()
    (compaction,) = session.compactions
    kept = conversation.harness.kept
    before, after = spoken(session)[: len(BEFORE_COMPACTION)], spoken(session)[len(BEFORE_COMPACTION) :]
    gone, still_there = before[: len(before) - kept], before[len(before) - kept :]
    ids = set(compaction.message_ids)
    assert [message.text for message in before if message.message_id in ids] == [message.text for message in gone]
    assert not ids & {message.message_id for message in after}
    assert ids >= {message.message_id for message in session.messages if message.role == "tool"}

    seen = json.dumps(conversation.requests[-1])
    assert SUMMARY in seen
    assert all(message.text in seen for message in [*still_there, after[0]])
    # Codex repeats the user's prompts word for word
    assert not [message.text for message in gone if message.role == "assistant" and message.text in seen]


def the_sensor_asks_for_its_day(conversation: Conversation) -> None:
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance, resources={"workspace": WorkspaceResource()}) as context,
    ):
        answer = session_sensor(context)
    assert isinstance(answer, dg.SensorResult)
    days = {f"{message.said_at:%Y-%m-%d}" for message in conversation.session().messages}
    assert {f"{request.partition_key}" for request in answer.run_requests or []} == days


CHECKS = [
    every_text_is_read_once_in_its_order_and_its_role,
    nothing_is_unknown_or_broken,
    tool_calls_stand_with_their_outputs,
    the_summary_was_said_by_nobody,
    errors_of_the_model_are_no_words_of_it,
    it_stands_where_and_when_it_was_said,
    the_compaction_holds_what_the_model_no_longer_sees,
    the_sensor_asks_for_its_day,
]


@pytest.mark.slow
@pytest.mark.usefixtures("at_home")
@each("check", CHECKS)
def test_a_conversation_is_read_as_it_was_held(
    conversation: Conversation, check: Callable[[Conversation], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test for each harness, since workers share no conversation."""
    use_encoder(monkeypatch, FakeEncoder("parcels", dimension=384))
    check(conversation)
