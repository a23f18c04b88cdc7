"""A server makes memory of what people push, each for themselves: what comes out is what their own machine would make,
and nobody's run reaches another's rows."""

from __future__ import annotations

import socket
from datetime import UTC, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memory_pipeline.days import today
from memory_pipeline.lake.object_storage import LakeRefusedError, ObjectStorage
from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.test_backfill import talk
from memory_pipeline_tests.conftest import write_session
from memory_pipeline_tests.lake.object_server import BUCKET, ObjectServer

NUMBERS = count()
DAYS = [today(UTC) - timedelta(days=back) for back in (12, 5, 4)]
CLOCKS = ("happened_at", "captured_at")
"""When a person or a run did something."""
EVENTS = {"events"}
"""Tables with such columns."""


def sessions(folder: Path, first: int = 0) -> Path:
    """Of a person, numbered so that each says something else."""
    for number, day in enumerate(DAYS, first):
        write_session(folder / f"{day}-{first}.jsonl", *talk(day, number), session_id=f"{day}-{first}")
    return folder


def made(storage: ObjectStorage) -> dict[str, bytes]:
    """Every file of a table in the bucket."""
    files = [file for file in storage._listed("") if not file.key.startswith(("backups/", "marks/"))]
    return {file.key: storage.read(file) for file in files}


def lake_of(home: Path) -> Path:
    return home / ".memory-pipeline" / "lake"


def with_names_of(alone: Path, laptop: Path, far: Path) -> None:
    """Give the others the random names of a machine: its salt, and those of its index."""
    lake_of(laptop).mkdir(parents=True)
    (lake_of(laptop) / "salt").write_bytes((lake_of(alone) / "salt").read_bytes())
    index = far / ".memory-pipeline" / "index"
    index.mkdir(parents=True)
    for mark in (alone / ".memory-pipeline" / "index").glob("*.generation"):
        (index / mark.name).write_text(mark.read_text("utf-8").partition("\n")[0], "utf-8")


def decided(home: Path, env: dict[str, str]) -> str:
    """What a person sees for review, and approves: the first line."""
    pending = memory_json(home, "review", "--list", env=env)["pending"]
    assert pending
    done = memory_json(home, "review", "--approve", pending[0]["proposal_id"], env=env)
    assert done["promoted"] == [pending[0]["proposal_id"]]
    return str(pending[0]["text"])


@pytest.mark.slow
def test_a_push_a_run_on_a_server_and_a_review_make_what_one_machine_makes(
    server: ObjectServer, tmp_path: Path
) -> None:
    said, url = sessions(tmp_path / "sessions"), f"s3://{BUCKET}/whole-{next(NUMBERS)}"
    alone, laptop, far = (tmp_path / name for name in ("alone", "laptop", "far"))
    assert memory(alone, "run", "--all", "--sessions", f"{said}").returncode == 0
    with_names_of(alone, laptop, far)
    env = server.env | {"MEMORY_LAKE": url}
    assert memory(laptop, "admin", "push", "--sessions", f"{said}", env=env).returncode == 0
    run = ("run", "--all", "--no-review")
    on_server = env | {"MEMORY_DEFAULT_SESSION_DIRS": "false"}
    done = memory(far, *run, env=on_server)
    assert done.returncode == 0, done.stderr
    assert not (far / ".memory-pipeline" / "MEMORY.md").exists()
    others = (("run", "--all"), ("backfill", "--yes"))
    beside = [memory(laptop, *call, "--sessions", f"{said}", env=env) for call in others]
    assert [each.returncode for each in beside] == [1, 1]
    for each in beside:
        assert f"is run with --no-review on {socket.gethostname()}" in " ".join(each.stderr.split())
        assert "Traceback" not in each.stderr
    assert "where this lake is reviewed" in done.stdout and "REVIEW.md" not in done.stdout
    text = decided(alone, {})
    assert decided(laptop, env) == text
    assert text in (laptop / ".memory-pipeline" / "MEMORY.md").read_text("utf-8")

    there = made(ObjectStorage(url))
    here = {f"{path.relative_to(lake_of(alone))}": path.read_bytes() for path in lake_of(alone).rglob("*.parquet")}
    assert there.keys() == here.keys()
    assert {key.partition("/")[0] for key in here if here[key] != there[key]} <= EVENTS
    for key in here:
        ours, theirs = (pl.read_parquet(BytesIO(tables[key])).drop(CLOCKS, strict=False) for tables in (here, there))
        assert_frame_equal(ours, theirs)

    # it is no loss to the server that MEMORY.md is on the laptop, and nothing is sent or made again
    again = memory(far, *run, env=on_server)
    assert again.returncode == 0, again.stderr
    assert "all up to date" in again.stderr
    assert "nothing was sent" in memory(laptop, "admin", "push", "--sessions", f"{said}", env=env).stdout
    assert made(ObjectStorage(url)) == there


@pytest.mark.slow
def test_a_run_for_one_person_asks_for_nothing_of_anothers(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, variables = f"s3://{BUCKET}", {}
    for number, name in enumerate(("ana", "ben")):
        env = variables[name] = server.may_only(f"key-of-{name}", f"{name}/") | {"MEMORY_LAKE": f"{place}/{name}"}
        said = sessions(tmp_path / "sessions" / name, 10 * number)
        assert memory(tmp_path / "laptops" / name, "admin", "push", "--sessions", f"{said}", env=env).returncode == 0
        on_server = env | {"MEMORY_DEFAULT_SESSION_DIRS": "false"}
        done = memory(tmp_path / "server" / name, "run", "--all", "--no-review", env=on_server)
        assert done.returncode == 0, done.stderr
    for number, name in enumerate(("ana", "ben")):
        texts = set(Lake(ObjectStorage(f"{place}/{name}")).read("observations")["text"])  # by a key that may use all
        assert any(f"by its port {9000 + 10 * number}" in text for text in texts)
        assert not any(f"by its port {9000 + 10 * (1 - number)}" in text for text in texts)
        asked = [key for access_key, key in server.asked if access_key == f"key-of-{name}"]
        assert len(asked) > 100 and all(key.startswith(f"{name}/") for key in asked)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", variables["ana"]["AWS_ACCESS_KEY_ID"])
    assert Lake(ObjectStorage(f"{place}/ana")).read("messages").height
    for table in ("messages", "events"):
        with pytest.raises(LakeRefusedError, match=rf"^{place}/ben\S* refused \(403"):
            Lake(ObjectStorage(f"{place}/ben")).read(table)
