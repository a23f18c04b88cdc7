"""What an agent had just done when its user spoke."""

import pytest

from memory_pipeline.friction.deeds import LAST_CALLS, MAX_WRITTEN, deeds_before
from memory_pipeline_tests.friction.made import turns


def deeds(*calls: str) -> frozenset[str]:
    made = turns("user: Go on.", *(f"call: {call}" for call in calls), "user: Not like that.")
    return deeds_before(made, 0, len(made) - 1)


@pytest.mark.parametrize(
    "call",
    [
        "edit(path=src/cursor.ts, oldText=at: Cursor, newText=at: any)",
        "Edit(file_path=/src/kiln/src/cursor.ts, old_string=at: Cursor, new_string=at: any)",
        "apply_patch(*** Begin Patch\n*** Update File: src/cursor.ts\n@@\n-at: Cursor\n+at: any\n*** End Patch)",
    ],
)
def test_an_edit_is_the_same_in_every_harness(call: str) -> None:
    assert deeds(call) == {"changed cursor.ts", "wrote any"}


def test_a_file_that_is_written_anew_each_time_has_one_name() -> None:
    assert deeds("write(path=SUMMARY_17.md, content=Kiln)") == deeds("write(path=out/SUMMARY_204.md, content=Kiln)")


def test_a_long_text_tells_only_its_file() -> None:
    text = " ".join(f"glaze{'x' * i}" for i in range(MAX_WRITTEN + 1))
    assert deeds(f"write(path=glazes.py, content={text})") == {"changed glazes.py"}


def test_a_program_is_told_with_its_subcommand_and_looking_is_no_deed() -> None:
    assert deeds("Bash(command=git push origin main)", "Bash(command=git status)", "Read(file_path=a.py)") == {
        "ran git push"
    }


def test_only_the_last_calls_count_however_much_was_looked_at_since() -> None:
    old = ["Bash(command=npm install)", *("Bash(command=git push)",) * LAST_CALLS]
    assert deeds(*old, *("Read(file_path=a.py)",) * 9) == {"ran git push"}


def test_what_was_done_before_the_request_is_another_matter() -> None:
    made = turns("user: Go.", "call: Bash(command=git push)", "user: Now sort the glazes.", "user: By cone, I said.")
    assert deeds_before(made, 2, 3) == frozenset()


@pytest.mark.parametrize(
    "call", ["edit()", "edit(path=)", "apply_patch(+++\n---)", "write(content=\x00‮)", "Bash(command=)"]
)
def test_a_call_that_is_no_call_breaks_nothing(call: str) -> None:
    assert all(deed.strip() for deed in deeds(call))
