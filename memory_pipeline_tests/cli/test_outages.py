"""What a user is told, and what is done all the same, while a server, an index, a model or a table is out of order."""

import shutil
import socket
from datetime import date
from pathlib import Path

import pytest
import typer

from memory_pipeline.cli.run import run
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.opening import SCHEMA
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.stages import Built
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.conftest import conversation, user, write_session

RULE = "Never push to main without a review of somebody else."
FAILED = 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session of a day."""
    said = [*conversation("2025-03-05T09:00:00"), user("2025-03-05T09:20:00", RULE)]
    write_session(tmp_path / "sessions" / "one.jsonl", *said)
    return tmp_path


def env(home: Path, **more: str) -> dict[str, str]:
    own = {"MEMORY_SESSION_DIRS": str(home / "sessions"), "MEMORY_DEFAULT_SESSION_DIRS": "false"}
    return own | {"MEMORY_TIMEZONE": "UTC"} | more


def in_review(home: Path) -> str:
    return (home / ".memory-pipeline" / "REVIEW.md").read_text("utf-8")


@pytest.mark.slow
def test_without_the_server_the_day_is_done_by_words_and_it_is_said(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    down = env(home, QDRANT_URL=url)
    for _ in range(2):  # the second time there is nothing else to do
        result = memory(home, "run", env=down)
        assert result.returncode == FAILED
        assert "Problems: There are no vectors, so lines are compared by their words: " in result.stderr
        assert f"The Qdrant server at {url} does not answer" in result.stderr
        assert "all up to date" not in result.stderr
        assert "1 days, without embeddings (last 2025-03-05)" in result.stdout
        assert RULE in in_review(home)
    told = memory(home, "status", env=down).stdout
    assert f"The Qdrant server at {url} does not answer" in told
    assert "days out of date        0" in told
    proposed = memory_json(home, "sql", "select proposal_id from proposals", env=env(home))
    result = memory(home, "run", env=env(home))  # back, or another one
    assert result.returncode == 0, result.stderr
    assert "by their words" not in result.stdout
    assert memory_json(home, "sql", "select proposal_id from proposals", env=env(home)) == proposed
    assert "all up to date" in memory(home, "run", env=env(home)).stderr


@pytest.mark.slow
def test_what_is_damaged_is_named_with_its_place_and_made_again(home: Path) -> None:
    assert memory(home, "run", env=env(home)).returncode == 0
    workspace = home / ".memory-pipeline"
    collections = [f"{workspace}/index/{base}-all-MiniLM-L6-v2-384-v{SCHEMA}" for base in (COLLECTION, MESSAGES)]
    for collection in collections:
        files = [path for path in Path(collection).rglob("*") if path.is_file()]
        assert files
        for path in files:
            path.write_bytes(b"broken")
    table = workspace / "lake" / "observations" / "2025-03-05.parquet"
    table.write_bytes(b"broken")
    told = memory(home, "status", env=env(home)).stdout
    assert "vectors are not in the index; `memory run --all` rebuilds them." in told
    assert "passages are not in the index; `memory run --all` rebuilds them." in told
    for place in (*(f"{collection}.broken-1" for collection in collections), f"{table}.broken-1"):
        assert f"quarantined             {place}" in told
    assert "days out of date        1" in told
    result = memory(home, "run", env=env(home))
    assert result.returncode == 0, result.stderr
    assert "all up to date" not in result.stderr
    assert f"quarantined             {table}.broken-1" in result.stdout
    assert "Then delete it." in result.stdout
    status = memory_json(home, "status", env=env(home))
    assert (status["problems"], status["days_out_of_date"], len(status["set_aside"])) == ([], [], 3)
    assert RULE in in_review(home)


@pytest.mark.slow
def test_what_cannot_be_made_again_is_never_set_aside(home: Path) -> None:
    assert memory(home, "run", env=env(home)).returncode == 0
    table = home / ".memory-pipeline" / "lake" / "proposals" / "2025-03-05.parquet"
    table.write_bytes(b"broken")
    shutil.rmtree(home / ".memory-pipeline" / "backups" / "lake")  # else its last version is put back
    result = memory(home, "run", env=env(home))
    assert result.returncode == FAILED
    assert f"{table} cannot be read" in result.stderr and "Restore a copy of it" in result.stderr
    assert table.read_bytes() == b"broken"


@pytest.mark.slow
def test_without_the_model_the_day_is_done_by_words_and_it_is_said(home: Path) -> None:
    without = env(home, EMBEDDING_MODEL="/nowhere/a-model")
    result = memory(home, "run", env=without)
    assert result.returncode == 0, result.stderr
    sentence = "There are no new vectors, so lines are compared by their words: EMBEDDING_MODEL='/nowhere/a-model'"
    assert [line.startswith(sentence) for line in result.stderr.splitlines()].count(True) == 1
    assert "Problems: " not in result.stderr
    assert "fetch the model first" in result.stdout
    assert RULE in in_review(home)
    status = memory_json(home, "status", env=without)
    assert (status["days_out_of_date"], status["days_by_words"]) == ([], ["2025-03-05"])
    assert status["lexical_only"] is True
    assert "EMBEDDING_MODEL='/nowhere/a-model'" in status["problems"][0]
    assert sentence in memory(home, "status", env=without).stdout
    assert "all up to date" not in memory(home, "run", env=without).stderr


@pytest.mark.slow
def test_a_day_that_fails_keeps_no_other_from_its_later_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {"05": RULE, "06": "Never use npm, always pnpm.", "07": "Always store times in UTC, never in local time."}
    for day, rule in rules.items():
        said = [*conversation(f"2025-03-{day}T09:00:00"), user(f"2025-03-{day}T09:20:00", rule)]
        write_session(tmp_path / "sessions" / f"{day}.jsonl", *said)
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(tmp_path / "sessions"))
    build = ObservationsStage.build

    def fails_on_one(self: ObservationsStage, day: date) -> Built:
        if day == date(2025, 3, 6):
            raise ValueError("nothing can be made of this day")
        return build(self, day)

    monkeypatch.setattr(ObservationsStage, "build", fails_on_one)
    with pytest.raises(typer.Exit) as ended:
        run()
    assert ended.value.exit_code == FAILED
    assert "ValueError: nothing can be made of this day (on 2025-03-06)" in capsys.readouterr().err
    review = (tmp_path / "workspace" / "REVIEW.md").read_text("utf-8")
    assert [rule in review for rule in rules.values()] == [True, False, True]
