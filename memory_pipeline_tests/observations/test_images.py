"""The mark that stands for an image is nobody's word."""

from __future__ import annotations

from pathlib import Path

from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, say, workspace

MARK = "[image: image/png, line 9, number 1]"


def test_a_message_of_an_image_alone_is_no_observation(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    rule = f"Always use the colours of this picture for parcels.\n{MARK}"
    say(lake, "s", "user: hello there", f"user: {MARK}", f"user: {rule}", "user: thanks", "user: bye for now")
    bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, DAY)
    texts = lake.read("observations", [DAY])["text"].to_list()
    assert any("colours of this picture" in text for text in texts)
    assert not any("[image:" in text for text in texts)
