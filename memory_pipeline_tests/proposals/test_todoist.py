"""Reviewing in Todoist, over real HTTP: what a person does with a task becomes a decision, once, whatever gets lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.proposals.automatic import HOW_TO_UNDO
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.todoist.client import Todoist, TodoistBusyError, TodoistRefusedError
from memory_pipeline.proposals.todoist.review import Reviewed, account_file, due, sync
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.proposals.todoist_server import TOKEN, Garbled, Lost, Refuse, TodoistServer, todoist_server
from memory_pipeline_tests.rows import (
    bytes_of,
    changed,
    decision,
    events,
    fixable,
    proposal,
    put,
    rule_pattern,
    without_events,
    workspace,
)

MADE = "POST /tasks"


class ReviewSession:
    """A workspace with proposals in REVIEW.md, and the Todoist account of the person who reviews."""

    def __init__(self, folder: Path, server: TodoistServer, *texts: str, **settings: Any) -> None:
        self.server = server
        token = {"todoist": True, "todoist_api_token": TOKEN}
        self.settings, self.lake = workspace(folder / "workspace", **token | settings)
        self.workspace = Workspace(self.settings, self.lake)
        self.propose(*texts)

    def propose(self, *texts: str, start: int = 1) -> None:
        put(self.lake, "proposals", *(proposal(start + i, text) for i, text in enumerate(texts)))
        reconcile(self.workspace, datetime.now(UTC))

    def go(self, **token: str) -> Reviewed:
        """One pass."""
        settings = changed(self.settings, **token)
        todoist = Todoist(settings.todoist.api_token)
        return sync(Workspace(settings, self.lake), todoist, datetime.now(UTC))

    def due(self) -> list[str]:
        todoist = Todoist(self.settings.todoist.api_token)
        return due(self.workspace, todoist)

    def status(self) -> dict[str, str]:
        """By the text that was proposed."""
        return dict(ProposalLog(self.lake).frame.select("text", "status").iter_rows())

    def decided(self) -> dict[str, tuple[str, str, str]]:
        """Decision, surface and text by the last three digits of the proposal."""
        rows = events(self.lake, "decided").iter_rows(named=True)
        return {row["proposal_id"][-3:]: (row["decision"], row["surface"], row["text"]) for row in rows}

    def memory(self) -> list[str]:
        """The lines of MEMORY.md, without their day and id."""
        path = self.settings.memory_file
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [line.split(") ", 1)[1].rsplit(" <!--", 1)[0] for line in lines if line.startswith("- (")]

    def tasks(self) -> dict[str, str]:
        """Task ids by the last three digits of the proposal, as the workspace remembers them."""
        rows = events(self.lake, "shown").filter(surface="todoist").sort("happened_at").iter_rows(named=True)
        return {row["proposal_id"][-3:]: row["external_id"] for row in rows}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TodoistServer]:
    with todoist_server() as running:
        monkeypatch.setattr("memory_pipeline.proposals.todoist.client.URL", running.url)
        yield running


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes any time."""
    pauses: list[float] = []
    monkeypatch.setattr("memory_pipeline.proposals.todoist.client.time.sleep", pauses.append)
    return pauses


@pytest.fixture
def desk(tmp_path: Path, server: TodoistServer) -> ReviewSession:
    return ReviewSession(tmp_path, server, "Use uv for Python.", "Never use npm.", "The API lives in api/.")


# --- what is made ---


def test_each_proposal_in_review_becomes_one_task(desk: ReviewSession) -> None:
    assert len(desk.due()) == 3
    assert len(desk.go().created) == 3
    assert desk.server.open() == ["Use uv for Python.", "Never use npm.", "The API lives in api/."]
    task = desk.server.task("Never use npm.")
    assert task["labels"] == ["memory-review"]
    assert "p-20250305-002" in task["description"]
    assert "2025-03-05 · said" in task["description"]
    assert "Hard Rules" in task["description"]
    assert desk.tasks() == {"001": "6X0000", "002": "6X0001", "003": "6X0002"}
    assert desk.due() == []


def test_a_second_pass_changes_nothing(desk: ReviewSession) -> None:
    desk.go()
    before, asked = bytes_of(desk.settings.workspace), len(desk.server.requests)
    assert desk.go() == Reviewed()
    assert bytes_of(desk.settings.workspace) == before
    assert [request.call for request in desk.server.requests[asked:]] == ["GET /tasks"]


def test_what_waits_its_turn_for_review_is_no_task_yet(tmp_path: Path, server: TodoistServer) -> None:
    desk = ReviewSession(tmp_path, server, "One.", "Two.", "Three.", pending_limit=2)
    desk.go()
    assert len(server.open()) == 2
    first = server.open()[0]
    server.complete(first)
    assert len(desk.go().created) == 1  # the place that became free
    assert sorted([first, *server.open()]) == ["One.", "Three.", "Two."]


def test_a_line_keeps_its_at_signs(tmp_path: Path, server: TodoistServer) -> None:
    """Todoist would cut `@types/node` out of the line and make it a label."""
    desk = ReviewSession(tmp_path, server, "Pin @types/node to 20.")
    desk.go()
    assert server.open() == ["Pin @types/node to 20."]
    assert server.task("Pin @types/node to 20.")["labels"] == ["memory-review"]


def test_a_long_line_is_shown_in_part_and_approved_as_a_whole(tmp_path: Path, server: TodoistServer) -> None:
    line = "Keep " + " and ".join(f"the setting number {n}" for n in range(60)) + "."
    desk = ReviewSession(tmp_path, server, line)
    desk.go()
    (content,) = server.open()
    assert len(content) <= 500
    assert line in server.task(content)["description"]
    server.complete(content)
    desk.go()
    assert desk.memory() == [line]


def test_more_tasks_than_a_page_holds(tmp_path: Path, server: TodoistServer) -> None:
    desk = ReviewSession(tmp_path, server, *(f"Fact number {n}." for n in range(120)), pending_limit=120)
    desk.go()
    assert len(server.open()) == 120
    pages = [request.query.get("cursor") for request in server.calls("GET /tasks")]
    assert pages == [None]
    assert desk.go() == Reviewed()
    assert [request.query.get("cursor") for request in server.calls("GET /tasks")[1:]] == [None, "c50", "c100"]
    for n in range(0, 120, 2):
        server.complete(f"Fact number {n}.")
    assert len(desk.go().approved) == 60
    assert len(desk.memory()) == 60
    assert len(server.open()) == 60
    assert len(server.calls("GET /tasks/{id}")) == 0  # a list of the completed tells it, not sixty requests


# --- what a person decides ---


def test_completing_approves(desk: ReviewSession) -> None:
    desk.go()
    desk.server.complete("Never use npm.")
    assert desk.due() == ["look up p-20250305-002"]
    done = desk.go()
    assert (done.approved, done.promoted) == (["p-20250305-002"], ["p-20250305-002"])
    assert desk.decided() == {"002": ("approved", "todoist", "Never use npm.")}
    assert desk.memory() == ["Never use npm."]
    assert "Never use npm." not in desk.settings.review_file.read_text("utf-8")
    assert desk.go() == Reviewed()


def test_the_line_is_promoted_as_it_was_edited(desk: ReviewSession) -> None:
    desk.go()
    desk.server.complete("Never use npm.", edited="Never use npm,\u200b use\npnpm. <!-- x")
    desk.go()
    assert desk.decided() == {"002": ("approved", "todoist", "Never use npm, use pnpm. &lt;!-- x")}
    assert desk.memory() == ["Never use npm, use pnpm. &lt;!-- x"]


def test_deleting_rejects(desk: ReviewSession) -> None:
    desk.go()
    desk.server.delete("Never use npm.")
    assert desk.go().rejected == ["p-20250305-002"]
    assert desk.decided() == {"002": ("rejected", "todoist", "Never use npm.")}
    assert desk.go() == Reviewed()
    assert len(desk.server.calls(MADE)) == 3  # it is not made again


def test_the_label_rejects_and_the_task_is_closed(desk: ReviewSession) -> None:
    desk.go()
    desk.server.label("Never use npm.", "memory-review", "rejected")
    assert desk.due() == ["reject p-20250305-002"]
    done = desk.go()
    assert (done.rejected, done.closed) == (["p-20250305-002"], ["p-20250305-002"])
    assert desk.server.open() == ["Use uv for Python.", "The API lives in api/."]
    assert desk.memory() == []


@pytest.mark.parametrize("listed", [True, False])
def test_a_task_without_our_label_decides_nothing_until_it_is_completed(desk: ReviewSession, listed: bool) -> None:
    """Also when it can only be asked for by its id."""
    desk.go()
    desk.server.label("Never use npm.", "errand")
    assert desk.go() == Reviewed()
    assert len(desk.server.calls(MADE)) == 3
    desk.server.complete("Never use npm.")
    if not listed:
        desk.server.task("Never use npm.")["completed_at"] = "2001-01-01T00:00:00.000000Z"
    assert desk.go().approved == ["p-20250305-002"]


def test_a_completed_task_is_no_deleted_one_where_it_cannot_be_asked_for(desk: ReviewSession) -> None:
    """Also when the person has emptied its description, and our mark with it."""
    desk.server.shows_completed = False
    desk.go()
    desk.server.task("Never use npm.")["description"] = ""
    desk.server.complete("Never use npm.")
    desk.server.complete("Use uv for Python.")
    assert sorted(desk.go().approved) == ["p-20250305-001", "p-20250305-002"]


def test_what_was_decided_elsewhere_is_closed(desk: ReviewSession) -> None:
    desk.go()
    decide(Workspace(desk.settings, desk.lake), {"p-20250305-002": "rejected"}, datetime.now(UTC))
    assert desk.due() == ["close 6X0001"]
    assert desk.go().closed == ["p-20250305-002"]
    assert desk.decided()["002"][:2] == ("rejected", "command")
    assert desk.due() == []


def test_a_task_whose_line_was_promoted_automatically_says_so(desk: ReviewSession) -> None:
    desk.go()
    today = datetime.now(UTC).date()
    made = {"surface": "auto", "text": "Never use npm.", "reason": HOW_TO_UNDO}
    put(desk.lake, "events", decision("p-20250305-002", day=today) | made)
    assert desk.go().closed == ["p-20250305-002"]
    ((content, comment),) = desk.server.comments
    assert content == "Never use npm."
    assert comment.startswith("This line was approved automatically; undo its change in the file")


def test_an_expired_task_is_closed_and_approves_nothing(desk: ReviewSession) -> None:
    desk.go()
    today = datetime.now(UTC).date()
    put(desk.lake, "events", decision("p-20250305-002", "expired", day=today) | {"surface": "expiry"})
    assert desk.go().closed == ["p-20250305-002"]
    assert desk.server.task("Never use npm.")["checked"]
    (comment,) = desk.server.comments
    assert comment == ("Never use npm.", "This proposal is expired and was not added to MEMORY.md.")
    assert desk.go() == Reviewed()
    assert desk.decided()["002"][0] == "expired"
    assert desk.memory() == []


def test_a_task_of_the_person_with_our_label_is_left_alone(desk: ReviewSession) -> None:
    desk.server.add("Read memory-review:00000000/p-20250305-002", description="memory-review:00000000/p-20250305-002")
    desk.go()
    assert desk.due() == []
    assert len(desk.server.open()) == 4
    desk.server.complete("Read memory-review:00000000/p-20250305-002")
    assert desk.go() == Reviewed()


def test_two_workspaces_share_an_account(tmp_path: Path, server: TodoistServer) -> None:
    """Equal ids in both: a decision in one is none in the other."""
    one = ReviewSession(tmp_path / "one", server, "Use uv.")
    two = ReviewSession(tmp_path / "two", server, "Never use npm.")
    one.go()
    two.go()
    server.complete("Use uv.")
    assert (one.go().approved, two.go()) == (["p-20250305-001"], Reviewed())
    assert two.status() == {"Never use npm.": "pending"}


# --- what gets lost ---


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("failure", [Lost(), Garbled()], ids=["lost", "garbled"])
def test_a_lost_answer_makes_no_second_task(desk: ReviewSession, failure: Lost | Garbled, remembers: bool) -> None:
    desk.server.remembers_requests = remembers
    desk.server.fail(MADE, failure)
    with pytest.raises(TodoistBusyError):
        desk.go()
    assert len(desk.go().created) == 2  # the mark tells that the first one is there
    assert len(desk.server.open()) == 3
    assert desk.tasks() == {"001": "6X0000", "002": "6X0001", "003": "6X0002"}


def test_a_lost_answer_and_a_list_that_lags_behind(desk: ReviewSession) -> None:
    """The request id, equal in every attempt, is what Todoist knows the second one by."""
    desk.server.fail(MADE, Lost())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory_pipeline.proposals.todoist.client.Todoist.review_tasks", lambda self: [])
        with pytest.raises(TodoistBusyError, match="did not answer"):
            desk.go()
        assert len(desk.go().created) == 3
    assert len(desk.server.open()) == 3
    ids = [request.headers["x-request-id"] for request in desk.server.calls(MADE)]
    assert len(ids) == 4 and len(set(ids)) == 3


def test_a_process_that_died_after_making_a_task_finds_it_again(desk: ReviewSession) -> None:
    desk.go()
    without_events(desk.lake, pl.col("kind") == "shown")
    assert len(desk.due()) == 3
    assert desk.go().created == []
    assert desk.tasks() == {"001": "6X0000", "002": "6X0001", "003": "6X0002"}


def test_a_task_that_was_completed_before_we_knew_of_it_is_an_approval(desk: ReviewSession) -> None:
    desk.go()
    without_events(desk.lake, pl.col("kind") == "shown")
    desk.server.complete("Never use npm.", edited="Never ever use npm.")
    done = desk.go()
    assert (done.approved, done.created) == (["p-20250305-002"], [])
    assert desk.memory() == ["Never ever use npm."]
    assert len(desk.server.calls(MADE)) == 3


def test_a_pass_that_ends_in_the_middle_is_finished_by_the_next(desk: ReviewSession) -> None:
    desk.server.fail("GET /projects", Lost())
    with pytest.raises(TodoistBusyError):
        desk.go()
    desk.server.fail(MADE, Refuse(503), times=1)
    with pytest.raises(TodoistBusyError, match="503"):
        desk.go()
    assert len(desk.go().created) == 3
    desk.server.complete("Use uv for Python.")
    desk.server.delete("Never use npm.")
    desk.server.fail("GET /tasks/{id}", Lost())
    with pytest.raises(TodoistBusyError):
        desk.go()
    assert desk.decided() == {}
    done = desk.go()
    assert (done.approved, done.rejected) == (["p-20250305-001"], ["p-20250305-002"])
    assert len(desk.server.calls(MADE)) == 4  # three, and the one that was refused


def test_another_account_decides_nothing(desk: ReviewSession) -> None:
    """All tasks are gone there; that is not three rejections."""
    desk.go()
    mine, desk.server.tasks, desk.server.inbox = desk.server.tasks, {}, "inbox-of-noor"
    with pytest.raises(TodoistRefusedError, match="another account"):
        desk.go()
    assert desk.decided() == {}
    assert desk.server.open() == []
    desk.server.tasks, desk.server.inbox = mine, "inbox-of-mira"
    assert desk.go() == Reviewed()


def test_a_person_may_move_to_another_account(desk: ReviewSession) -> None:
    desk.go()
    desk.server.tasks, desk.server.inbox = {}, "inbox-of-noor"
    account_file(desk.settings).unlink()
    assert len(desk.go().created) == 3
    desk.server.complete("Never use npm.")
    assert desk.go().approved == ["p-20250305-002"]
    assert set(desk.status().values()) == {"pending", "approved"}


def test_an_approved_line_that_is_invalid_by_now_says_so_at_its_task(desk: ReviewSession) -> None:
    desk.go()
    desk.settings.memory_file.write_text("# Memory\n\n## Hard Rules\n\n- Never use npm.\n", "utf-8")
    desk.server.complete("Never use npm.")
    done = desk.go()
    assert (done.invalid, done.approved, done.promoted) == (["p-20250305-002"], [], [])
    ((content, comment),) = desk.server.comments
    assert content == "Never use npm." and comment.startswith("Not added to MEMORY.md: ")
    assert desk.memory() == []


# --- what Todoist refuses, and what nobody may see ---


def test_a_request_to_wait_is_obeyed(desk: ReviewSession, slept: list[float]) -> None:
    desk.server.fail(MADE, Refuse(429, {"Retry-After": "7"}), times=2)
    assert len(desk.go().created) == 3
    assert slept == [7.0, 7.0]
    assert len(desk.server.open()) == 3


@pytest.mark.parametrize("header", [{"Retry-After": "3600"}, {"Retry-After": "soon"}])
def test_a_long_wait_is_left_to_the_next_pass(desk: ReviewSession, slept: list[float], header: dict[str, str]) -> None:
    desk.server.fail("GET /tasks", Refuse(429, header), times=2)
    with pytest.raises(TodoistBusyError, match=r"wait (3600|60) seconds"):
        desk.go()
    assert sum(slept) <= 60


def test_a_wrong_token_is_a_sentence_without_it(desk: ReviewSession) -> None:
    with pytest.raises(TodoistRefusedError) as caught:
        desk.go(todoist_api_token="wrong-0815")
    assert "TODOIST_API_TOKEN (401)" in str(caught.value)
    assert "wrong-0815" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "tökén"])
def test_a_token_that_cannot_be_sent_is_not(desk: ReviewSession, token: str) -> None:
    with pytest.raises(TodoistRefusedError, match="TODOIST_API_TOKEN") as caught:
        desk.go(todoist_api_token=token)
    assert not token or token not in str(caught.value)
    assert desk.server.requests == []


def test_what_todoist_says_of_a_refusal_is_told_without_the_token(desk: ReviewSession) -> None:
    desk.server.fail(MADE, Refuse(400, body=f"Too many tasks\nfor {TOKEN}"))
    with pytest.raises(TodoistRefusedError) as caught:
        desk.go()
    assert "POST /api/v1/tasks (400)" in str(caught.value)
    assert "Too many tasks" in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_server_that_is_down_is_a_sentence(desk: ReviewSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.proposals.todoist.client.URL", "http://127.0.0.1:1")
    with pytest.raises(TodoistBusyError, match="did not answer"):
        desk.go()


def test_the_token_is_sent_to_todoist_and_nowhere_else(desk: ReviewSession, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk.go()
    desk.server.complete("Use uv for Python.")
    desk.server.delete("Never use npm.")
    desk.server.fail("GET /tasks/{id}", Refuse(429, {"Retry-After": "1"}))
    desk.go()
    assert {request.headers["authorization"] for request in desk.server.requests} == {f"Bearer {TOKEN}"}
    assert [name for name, data in bytes_of(desk.settings.workspace).items() if TOKEN.encode() in data] == []
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(desk.settings)
    assert TOKEN not in json.dumps([task["description"] for task in desk.server.tasks.values()])


# --- friction fixes ---


def test_a_fix_is_a_task_with_its_exact_change(tmp_path: Path, server: TodoistServer) -> None:
    desk = ReviewSession(tmp_path, server)
    put(desk.lake, "friction_clusters", fixable(1, "Slow tests", change="--- AGENTS.md\n+    pytest -x"))
    put(desk.lake, "friction_clusters", rule_pattern(2, "Never use npm.", severity=9.0))
    reconcile(desk.workspace, datetime.now(UTC))
    desk.go()
    line, change = desk.server.open()
    assert line == "Never use npm."
    assert change.startswith("Slow tests — 3 times in 2 sessions since 2025-03-05")
    task = desk.server.task(change)
    assert "```diff\n--- AGENTS.md\n+    pytest -x\n```" in task["description"]
    assert "Complete it to approve the fix;" in task["description"]
    desk.server.complete(line, edited="Never use npm, use pnpm.")
    desk.server.complete(change, edited="Nobody reads this")
    desk.go()
    assert desk.decided() == {
        "002": ("approved", "todoist", "Never use npm, use pnpm."),
        "001": ("approved", "todoist", "--- AGENTS.md\n+    pytest -x"),
    }
    assert desk.memory() == ["Never use npm, use pnpm. (project: kiln)"]
    assert desk.go() == Reviewed()


def test_a_fix_whose_task_is_deleted_is_rejected(tmp_path: Path, server: TodoistServer) -> None:
    desk = ReviewSession(tmp_path, server)
    put(desk.lake, "friction_clusters", fixable(1, "Slow tests"))
    reconcile(desk.workspace, datetime.now(UTC))
    desk.go()
    desk.server.delete(desk.server.open()[0])
    assert desk.go().rejected == ["f-20250305-001"]
    assert "f-2025" not in desk.settings.review_file.read_text("utf-8")
