"""A lake on Google's and on Azure's object storage: what a condition on a write says, and what a listing tells."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.object_storage import LakeRefusedError, ObjectStorage
from memory_pipeline.lake.storage import ReplacedMeanwhileError
from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.cli.test_interrupted import wait_for
from memory_pipeline_tests.lake.google_server import BUCKET, google_storage
from memory_pipeline_tests.lake.workers import frame
from memory_pipeline_tests.postgres import free_port, is_open
from memory_pipeline_tests.rows import DAY, decision, observation

AZURITE = Path(__file__).parents[2] / ".harnesses/node_modules/.bin/azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Those of every Azurite, as its documentation has them: they open nothing else."""
NAMES = count()


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with google_storage(tmp_path_factory.mktemp("google")) as variables:
        yield variables


@pytest.fixture(scope="module")
def azure() -> Iterator[dict[str, str]]:
    """Azurite, Microsoft's own, with one empty container."""
    if not AZURITE.exists() or not shutil.which("node"):
        pytest.skip("no Azurite; `make harnesses` installs it")
    port = free_port()
    place = ("--blobHost", "127.0.0.1", "--blobPort", f"{port}", "--inMemoryPersistence", "--disableTelemetry")
    process = subprocess.Popen(
        [AZURITE, *place, "--silent", "--skipApiVersionCheck"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: is_open(port))
        _make_container(port)
        yield {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        }
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(params=["gs", "az"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in request.getfixturevalue({"gs": "google", "az": "azure"}[request.param]).items():
        monkeypatch.setenv(name, value)
    return f"{request.param}://{BUCKET}/lake-{next(NAMES)}"


def test_a_write_replaces_what_it_expects_and_nothing_else(url: str) -> None:
    storage, key = ObjectStorage(url), f"events/{DAY}.parquet"
    first = storage.write(key, b"first", expected=None)
    with pytest.raises(ReplacedMeanwhileError):
        storage.write(key, b"another first", expected=None)
    second = storage.write(key, b"second", expected=first.version)
    with pytest.raises(ReplacedMeanwhileError):
        storage.write(key, b"of one who saw the first", expected=first.version)
    assert storage.read(second) == b"second"
    storage.remove([key])
    assert storage.state(key) is None
    with pytest.raises(ReplacedMeanwhileError):
        storage.write(key, b"of one who saw the second", expected=second.version)


def test_a_listing_tells_the_version_that_a_look_and_a_write_tell(url: str, tmp_path: Path) -> None:
    storage, key = ObjectStorage(url, tmp_path), f"messages/{DAY}.parquet"
    written = storage.write(key, b"some bytes of it")
    assert storage.files("messages") == [written] == [storage.state(key)]


def test_rows_are_added_by_two_who_share_a_lake(url: str) -> None:
    mine, others = Lake(ObjectStorage(url)), Lake(ObjectStorage(url))
    for number, lake in enumerate((mine, others, mine), 1):
        new = frame("events", decision(f"p-20250305-00{number}"))
        lake.update("events", lambda rows, new=new: pl.concat([rows, new]), DAY)  # type: ignore[misc]
    assert others.read("events").height == 3
    mine.replace("observations", frame("observations", observation("Never use npm.")), [DAY], {DAY: "made of it"})
    assert others.fingerprint("observations", DAY) == "made of it"
    assert others.days("observations") == [DAY]


def test_a_bucket_that_is_not_there_is_one_sentence(url: str) -> None:
    with pytest.raises(LakeRefusedError, match=r"The bucket of \w\w://not-there"):
        ObjectStorage(url.replace(BUCKET, "not-there")).files("messages")


def _make_container(port: int) -> None:
    """Signed as https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key says."""
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Length": "0"}
    signed = (
        f"PUT{12 * chr(10)}x-ms-date:{date}\nx-ms-version:2021-08-06\n/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    )
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)).decode()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    connection.request("PUT", f"/{ACCOUNT}/{BUCKET}?restype=container", headers=headers)
    assert connection.getresponse().status == 201
    connection.close()
