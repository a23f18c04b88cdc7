"""Size and shape of the code: lines, files, functions, settings, commands, beside an older checkout.

    python -m benchmarks.size [CHECKOUT ...]

Each checkout (this one when none is named) is a column. Lines are physical lines of Python. A function's length is the
number of lines from its `def` to its end; its complexity is 1 plus the branches in it (`if`, `for`, `while`, `except`,
`case`, `and`/`or`, conditional expressions, conditions of comprehensions), nested functions not counted twice.
Settings and commands are asked from the program of the checkout, with this Python and its packages. Files that a
session line and an `[x]` pass through are measured by the checkout's own `benchmarks.hops`.

A test item is one that `pytest --collect-only -m "not nightly"` lists; collecting takes a minute, so `--tests` asks for
it.
"""

import ast
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import parser

HERE = Path(__file__).resolve().parents[1]
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
BRANCH = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.IfExp)
COUNT_SETTINGS = """
from pydantic import BaseModel
from memory_pipeline.settings import Settings
def leaves(model):
    for field in model.model_fields.values():
        kind = field.annotation
        is_table = isinstance(kind, type) and issubclass(kind, BaseModel)
        yield from leaves(kind) if is_table else [1]
print(sum(leaves(Settings)))
"""


@dataclass
class Function:
    """A function with its length in lines and its cyclomatic complexity."""

    name: str
    lines: int
    complexity: int


@dataclass
class Code:
    """The parsed Python files below a folder: tree and number of lines of each."""

    trees: list[ast.Module]
    lengths: list[int]

    @classmethod
    def read(cls, folder: Path) -> "Code":
        texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))]
        return cls([ast.parse(text) for text in texts], [text.count("\n") for text in texts])

    def nodes(self) -> Iterator[ast.AST]:
        for tree in self.trees:
            yield from ast.walk(tree)

    def functions(self) -> list[Function]:
        return [
            Function(node.name, (node.end_lineno or node.lineno) - node.lineno + 1, _complexity(node))
            for node in self.nodes()
            if isinstance(node, FUNCTION)
        ]

    def regexes(self) -> int:
        """Calls of `re` and `re2` that take a pattern."""
        names = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
        return sum(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in names
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in ("re", "re2")
            for node in self.nodes()
        )

    def numeric_constants(self) -> int:
        """Assignments of a number to a name in capitals at module or class level."""
        count = 0
        for node in self.nodes():
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                capitals = [isinstance(name, ast.Name) and name.id.lstrip("_").isupper() for name in names]
                if all(capitals):
                    count += sum(map(_is_number, values))
        return count


def _complexity(function: FUNCTION) -> int:
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTION):
            continue
        count += isinstance(node, BRANCH)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        if isinstance(node, ast.comprehension):
            count += len(node.ifs)
        waiting.extend(ast.iter_child_nodes(node))
    return count


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone, such as `60 * 60`."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def ask(checkout: Path, *args: str) -> str:
    """Output of a Python program of the checkout, in an empty home."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(checkout), "COLUMNS": "200"}
        answer = subprocess.run(
            [sys.executable, *args], cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
    return answer.stdout


def commands(checkout: Path) -> int:
    """Number of commands that `memory --help` lists."""
    listed = ask(checkout, "-m", "memory_pipeline.cli.main", "--help").split("Commands:", 1)[-1]
    return len(re.findall(r"(?m)^  [a-z][a-z-]*(?=  |$)", listed))


def words(checkout: Path) -> int:
    documents = [checkout / "README.md", *(checkout / "docs").glob("*.md")]
    return sum(len(path.read_text("utf-8").split()) for path in documents)


def hops(checkout: Path) -> tuple[str, str]:
    """Files that a session line passes through until it is proposed, and `[x]` until it is in MEMORY.md."""
    found = re.findall(r"(?m)^\([ab]\).*?: (\d+) files", ask(checkout, "-m", "benchmarks.hops"))
    return (found[0], found[1]) if len(found) == 2 else ("?", "?")


def figures(checkout: Path, *, with_tests: bool) -> dict[str, str]:
    product, tests = Code.read(checkout / "memory_pipeline"), Code.read(checkout / "memory_pipeline_tests")
    functions = product.functions()
    data = list((checkout / "memory_pipeline").rglob("*.json"))
    line, mark = hops(checkout)
    found = {
        "product lines": f"{sum(product.lengths):,}",
        "product files": f"{len(product.lengths)}",
        "lines of JSON in the product": f"{sum(path.read_text('utf-8').count(chr(10)) for path in data):,}",
        "longest file": f"{max(product.lengths)}",
        "median file": f"{statistics.median(filter(None, product.lengths)):.0f}",
        "functions": f"{len(functions):,}",
        "median length of a function": f"{statistics.median(each.lines for each in functions):.0f}",
        "90th percentile of their length": f"{statistics.quantiles((each.lines for each in functions), n=10)[-1]:.0f}",
        "mean complexity": f"{statistics.mean(each.complexity for each in functions):.2f}",
        "functions of complexity over 10": f"{sum(each.complexity > 10 for each in functions)}",
        "functions named x_of": f"{sum(each.name.endswith('_of') for each in functions)}",
        "calls of a regular expression": f"{product.regexes()}",
        "numeric constants": f"{product.numeric_constants()}",
        "settings": ask(checkout, "-c", COUNT_SETTINGS).strip() or "?",
        "commands": f"{commands(checkout)}",
        "files from a session line to a proposal": line,
        "files from [x] to MEMORY.md": mark,
        "words of documentation": f"{words(checkout):,}",
        "test lines": f"{sum(tests.lengths):,}",
    }
    if with_tests:
        listed = ask(checkout, "-m", "pytest", "--collect-only", "-q", "-m", "not nightly")
        found["test items"] = re.findall(r"(\d+)(?:/\d+)? tests? ", listed)[-1] if listed else "?"
    return found


def main() -> None:
    options = parser("size", __doc__)
    options.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    options.add_argument("--tests", action="store_true", help="count the test items, which takes a minute")
    chosen = options.parse_args()
    columns = [figures(checkout.resolve(), with_tests=chosen.tests) for checkout in chosen.checkouts]
    print(f"{'':<40}" + "".join(f"{checkout.resolve().name:>12}" for checkout in chosen.checkouts))
    for name in columns[0]:
        print(f"{name:<40}" + "".join(f"{column[name]:>12}" for column in columns))


if __name__ == "__main__":
    main()
