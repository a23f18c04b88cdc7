"""Processes that look at session files at the same time lose none of each other's rows."""

import subprocess
import sys
from pathlib import Path

from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.conftest import conversation, write_session

FILES = 40
LOOK_AT_ONE_AFTER_THE_OTHER = """
import sys
from pathlib import Path
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.harnesses.model import source_of
from memory_pipeline.settings import load_settings

settings = load_settings()
catalogue = Catalogue(Lake(settings.lake_dir), settings)
sys.stdin.readline()  # both begin at once
for path in sorted(Path(sys.argv[1]).glob("*.jsonl")):
    catalogue.refresh([source_of(path)])
"""


def test_two_processes_that_write_the_catalogue_at_once_lose_no_row(tmp_path: Path) -> None:
    folders = [tmp_path / "sessions" / name for name in ("one", "two")]
    for folder in folders:
        for number in range(FILES):
            topic = f"{folder.name} {number}"
            write_session(folder / f"{folder.name}-{number}.jsonl", *conversation("2025-03-05T09:00:00", 1, topic))
    processes = [
        subprocess.Popen([sys.executable, "-c", LOOK_AT_ONE_AFTER_THE_OTHER, f"{folder}"], stdin=subprocess.PIPE)
        for folder in folders
    ]
    for process in processes:
        assert process.stdin
        process.stdin.close()
    assert [process.wait(120) for process in processes] == [0, 0]
    known = Lake(load_settings().lake_dir).read("files")["path"].to_list()
    assert sorted(known) == sorted(f"{path}" for folder in folders for path in folder.glob("*.jsonl"))
