"""The licences of all packages that `[all]` installs without torch, as their own metadata states them.

.venv/bin/python deploy/licences.py > deploy/licences.csv
"""

from __future__ import annotations

import csv
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"sentence-transformers"}
"""See without-torch.txt."""
LONGEST = 60


def installed() -> dict[str, Distribution]:
    """The packages that pyproject.toml asks for, and those that they ask for, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    own = Requirement(*extras["all"])
    waiting = [Requirement(line) for line in project["dependencies"]]
    waiting += [Requirement(line) for extra in own.extras for line in extras[extra]]
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in LEFT_OUT or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                found[name] = distribution(name)
                needed = [Requirement(line) for line in found[name].requires or ()]
                for one in needed:
                    if one.marker is None or one.marker.evaluate({"extra": extra}):
                        one.marker = None
                        waiting.append(one)
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """The licence by expression, classifier or text, whichever comes first."""
    about = package.metadata
    classified = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if "License ::" in line]
    text = (about.get("License") or "").strip().partition("\n")[0]
    return about.get("License-Expression") or ", ".join(classified) or text[:LONGEST] or "not stated"


if __name__ == "__main__":
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("package", "licence"))
    try:
        table.writerows((name, licence(package)) for name, package in installed().items())
    except PackageNotFoundError as missing:
        sys.exit(f"{missing} is not installed here.")
