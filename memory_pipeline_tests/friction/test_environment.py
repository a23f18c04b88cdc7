"""Whether what a failed command printed tells of where it ran."""

from __future__ import annotations

import pytest

from memory_pipeline.friction.environment import A_NAME, A_PATH, MAX_CHARACTERS, MAX_LINES, end_of, parts_of_output
from memory_pipeline.friction.environment import is_of_environment as judged
from memory_pipeline_tests.friction.made import encoded, failing


def is_of_environment(*outputs: str) -> bool:
    ends = [end_of(output) for output in outputs]
    return judged(ends, encoded(set(ends)))


@pytest.mark.parametrize(
    "output",
    [
        "fire.sh: line 4: kilnctl: command not found",
        "kiln: no oven answers on 10.0.3.7, are you on the workshop's network?",
        'Traceback (most recent call last):\n  File "/srv/kiln/fire.py", line 3, in <module>\n    import numpy\n'
        "ModuleNotFoundError: No module named 'numpy'",
        "error: the licence of the firing simulator has expired on this host",
        'psycopg.OperationalError: connection to server at "localhost", port 5432 failed: Connection refused',
        "Fehler: Der Brennofen-Treiber ist auf diesem Rechner nicht installiert",
        "could not load the default credentials; run `gcloud auth application-default login`",
    ],
)
def test_a_machine_an_account_or_a_service_that_is_not_as_it_should_be_is_told(output: str) -> None:
    assert is_of_environment(output)


@pytest.mark.parametrize(
    "output",
    [
        "FAILED tests/test_oven.py::test_cone - AssertionError: assert 1050 == 1060\n1 failed, 12 passed in 0.31s",
        "src/oven.ts(12,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        "  1) Oven retries\n     AssertionError: expected 'ECONNREFUSED' to equal 'ETIMEDOUT'\n"
        "      at Context.<anonymous> (test/oven.spec.js:14:9)",
        "glaze-lint: 3 glazes have no cone in glazes.yaml",
        "error[E0308]: mismatched types\n  --> src/oven.rs:9:5\n   |\n9  |     temperature\n"
        "   |     ^^^^^^^^^^^ expected `u32`, found `f64`",
        "CONFLICT (content): Merge conflict in kiln/oven.py\nAutomatic merge failed; fix conflicts and then commit.",
    ],
)
def test_a_failure_of_the_work_is_none(output: str) -> None:
    assert not is_of_environment(output)


def test_a_test_of_a_refused_connection_is_a_failure_and_a_refused_connection_is_none() -> None:
    refused = "dial tcp 127.0.0.1:8500: connect: connection refused"
    test = f"--- FAIL: TestRetries (0.00s)\n    oven_test.go:31: got error %q, want nil: {refused}\n"
    test += "FAIL\nFAIL\tkiln/oven\t0.012s\nFAIL"
    kinds = []
    for command, output in (("go test ./oven", test), ("kilnctl fire", f"Error: {refused}")):
        session = (f"call: Bash(command={command})", f"fails: {output}")
        kinds.append([pattern.kind for pattern in failing(session, session)])
    assert kinds == [["recurring_failure"], ["configuration_drift"]]


def test_several_outputs_of_one_thing_are_judged_together() -> None:
    plain, vague = "bash: kilnctl: command not found", "fire: giving up after 3 tries"
    assert is_of_environment(plain, vague)
    assert not judged([], {})


def test_without_vectors_words_alone_tell() -> None:
    assert judged(["bash: kilnctl: command not found"], {})


def test_numbers_paths_and_names_of_variables_are_the_same_each_time() -> None:
    one, other = (
        parts_of_output(f"{path}:{line}: {name} is not set")
        for path, line, name in (("/srv/a/fire.py", 3, "KILN_KEY"), ("~/code/kiln/oven.py", 41, "OVEN_TOKEN"))
    )
    assert one == other >= {A_PATH, A_NAME, "is not", "not set"}


def test_of_a_long_output_the_end_counts() -> None:
    end = end_of("\n".join(f"step {number} of the firing went well" for number in range(100)) + "\n\nout of gas\n")
    assert end.splitlines()[-1] == "out of gas"
    assert len(end.splitlines()) <= MAX_LINES and len(end) <= MAX_CHARACTERS
    assert end_of("") == "" and parts_of_output("") == frozenset()
