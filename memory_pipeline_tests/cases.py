"""A table of cases in one test: each case runs, and the failure names all that failed.

::

    @each("text, words", [("a b", 2), ("", 0)])
    def test_words_are_counted(text: str, words: int) -> None: ...

It is written as `pytest.mark.parametrize` is, and costs the fixtures of one test instead of those of a thousand. A case
that asks for `tmp_path` has a folder and a workspace of its own, and what one patches with `monkeypatch` is undone
before the next. Other fixtures are shared: where a case changes what they hold, parametrize.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

Test = Callable[..., None]
Ids = Callable[[Any], Any] | Iterable[Any] | None


def each(names: str | Sequence[str], cases: Iterable[Any], *, ids: Ids = None) -> Callable[[Test], Test]:
    """Run a test once for each case. Raises a group of all failures, each with the name of its case.

    A case that skips does not end the others; the test counts as skipped when every case passed or skipped.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = _named(arguments, list(cases), ids)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        wanted = [name for name in signature.parameters if name not in arguments]

        @functools.wraps(test)
        def run(*self: object, **fixtures: Any) -> None:
            if not table:
                pytest.skip("no cases: the data that they are made from is not there")
            failures: list[BaseException] = []
            skipped: list[str] = []
            for number, (name, values) in enumerate(table):
                try:
                    with _own(fixtures, number) as given:
                        test(*self, **given, **values)
                except pytest.skip.Exception as reason:
                    skipped.append(f"{name}: {reason}")
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"in the case {name}")
                    failures.append(failure)
            if failures:
                failed = ", ".join(failure.__notes__[-1].removeprefix("in the case ") for failure in failures)
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases failed: {failed}", failures)
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(table)} cases: {'; '.join(skipped)}")

        run.__signature__ = signature.replace(parameters=[signature.parameters[name] for name in wanted])  # type: ignore[attr-defined]
        return run

    return decorate


def nightly(*values: Any) -> list[Any]:
    """Values for `parametrize` that only `make test-nightly` tries; a tuple stands for one case."""
    own = pytest.mark.nightly
    return [pytest.param(*value, marks=own) if _is_row(value) else pytest.param(value, marks=own) for value in values]


def _is_row(value: object) -> bool:
    return isinstance(value, tuple) and len(value) > 1


def _named(arguments: Sequence[str], cases: Sequence[Any], ids: Ids) -> list[tuple[str, dict[str, Any]]]:
    """Each case with its name and its values by argument."""
    named = list(ids) if isinstance(ids, Iterable) else []
    table = []
    for number, case in enumerate(cases):
        own, values = None, case if len(arguments) > 1 else (case,)
        if isinstance(case, type(pytest.param())):
            assert not case.marks, "a case with marks is a test of its own: parametrize"
            own, values = case.id, case.values
        if callable(ids):
            own = own or "-".join(f"{ids(value)}" for value in values)
        elif named:
            own = own or named[number]
        name = f"{own}" if own is not None else "-".join(map(_shown, values))
        table.append((name, dict(zip(arguments, values, strict=True))))
    return table


def _shown(value: object) -> str:
    shown = value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


@contextmanager
def _own(fixtures: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of one case."""
    given = dict(fixtures)
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in fixtures:
            given["monkeypatch"] = patch
        if "tmp_path" in fixtures:
            given["tmp_path"] = fixtures["tmp_path"] / f"case-{number}"
            given["tmp_path"].mkdir()
            patch.setenv("MEMORY_WORKSPACE", f"{given['tmp_path'] / 'workspace'}")
        yield given
