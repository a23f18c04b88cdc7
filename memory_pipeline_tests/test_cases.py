"""Tables of cases name every case that failed, and none hides another."""

import os
from pathlib import Path

import pytest

from memory_pipeline_tests.cases import each


def test_every_case_runs_and_every_failure_is_named() -> None:
    ran = []

    @each("number, text", [(1, "a"), (2, "b"), pytest.param(3, "c", id="the third")])
    def check(number: int, text: str) -> None:
        ran.append(text)
        assert number == 2
        pytest.fail("it is never right")

    with pytest.raises(BaseExceptionGroup, match=r"3 of 3 cases failed: 1-'a', 2-'b', the third") as caught:
        check()
    assert ran == ["a", "b", "c"]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["in the case 1-'a'"],
        ["in the case 2-'b'"],
        ["in the case the third"],
    ]


@each("number", [0, 1])
def test_a_case_has_a_folder_and_variables_of_its_own(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(tmp_path.iterdir()) and "OF_A_CASE" not in os.environ
    assert Path(os.environ["MEMORY_WORKSPACE"]).parent == tmp_path
    (tmp_path / f"{number}").touch()
    monkeypatch.setenv("OF_A_CASE", f"{number}")
