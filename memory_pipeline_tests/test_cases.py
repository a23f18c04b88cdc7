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


def test_cases_that_pass_or_skip_do_not_fail() -> None:
    @each("number", [1, 2])
    @each("text", ["a", "b"], ids=str.upper)
    def check(number: int, text: str) -> None:
        if (number, text) == (1, "b"):
            pytest.skip("not today")

    with pytest.raises(pytest.skip.Exception, match=r"1 of 2 cases: 1: 1 of 2 cases: B: not today"):
        check()


def test_a_table_without_cases_skips() -> None:
    @each("number", [])
    def check(number: int) -> None:
        raise AssertionError

    with pytest.raises(pytest.skip.Exception, match="no cases"):
        check()


@each("number", [0, 1])
def test_a_case_has_a_folder_and_variables_of_its_own(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(tmp_path.iterdir()) and "OF_A_CASE" not in os.environ
    assert Path(os.environ["MEMORY_WORKSPACE"]).parent == tmp_path
    (tmp_path / f"{number}").touch()
    monkeypatch.setenv("OF_A_CASE", f"{number}")
