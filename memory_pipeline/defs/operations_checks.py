"""The check on the files that are read beside MEMORY.md."""

from datetime import date

import dagster as dg

from memory_pipeline.days import today
from memory_pipeline.defs.check_results import verdict_metadata
from memory_pipeline.defs.orchestration import WorkspaceResource
from memory_pipeline.operations.identity import NOT_SET, look_at_identity
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict

IDENTITY = "identity_files"


@dg.asset_check(asset="memory_file", name=IDENTITY)
def identity_files(workspace: WorkspaceResource) -> dg.AssetCheckResult:
    """The files that agents read before MEMORY.md are there, and every link by which they are found leads to them.

    It is about files, not days, so it has no partitions. `memory admin identity` shows the same.

    Fails when a file of the list is missing or empty, or a link leads elsewhere or nowhere.
    """
    settings = workspace.open().settings
    verdict = judge_identity(settings, today(settings.zone))
    return dg.AssetCheckResult(
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=verdict.sentence,
        metadata=verdict_metadata(verdict, "broken"),
    )


def judge_identity(settings: Settings, day: date) -> Verdict:
    found = look_at_identity(settings, day)
    if found is None:
        return Verdict(True, {"judged": f"not set: {NOT_SET}"}, judged="No list of files is set")
    broken = [looked.line for looked in found.broken]
    numbers: dict[str, float | int | str] = {"files": len(found.files), "links": len(found.links)}
    return Verdict(not broken, numbers, broken, f"{len(found.files)} files and {len(found.links)} links to them")
