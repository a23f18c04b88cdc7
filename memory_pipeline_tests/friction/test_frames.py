"""The same said of different things is work that is asked for; the same said again, in any words, is not."""

from __future__ import annotations

import pytest

from memory_pipeline.friction.frames import mostly_of_one_frame


@pytest.mark.parametrize(
    "texts",
    [
        ("add a test for the importer", "add a test for the mailer", "add a test for src/queue.py please"),
        ("schreib mir einen Test für den Import", "schreib mir einen Test für die Warteschlange"),
        ("fix the lint errors in src/a.py", "fix the lint errors in src/b.py", "what is left?"),
        ("the export button still needs an icon", "the import button still needs an icon"),
    ],
)
def test_one_frame_with_other_things_in_it(texts: tuple[str, ...]) -> None:
    assert mostly_of_one_frame(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ("tests belong next to the module", "tests belong next to the module"),  # word for word
        (
            "tests belong next to the module",
            "why is the spec in a folder of its own",
            "beside the source, like the rest",
        ),
        ("use uv", "use pnpm"),  # too short to be a frame
        ("we're on bun here", "we're on bun here, not on node"),  # only longer
        ("the importer fails", "the mailer is done", "add a test for the queue", "add a test for the index", "no"),
        (),
    ],
)
def test_what_is_no_frame(texts: tuple[str, ...]) -> None:
    assert not mostly_of_one_frame(texts)
