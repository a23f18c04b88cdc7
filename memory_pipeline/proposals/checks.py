"""The check on the life of proposals, and the one on the files that are read beside MEMORY.md."""

from datetime import date

import dagster as dg

from memory_pipeline.days import today
from memory_pipeline.operations.identity import NOT_SET, look_at_identity
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.proposals.integrity import Ends
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict

ONE_END = "one_decision_each"
IDENTITY = "identity_files"


@dg.asset_check(asset="proposals", name=ONE_END, partitions_def=PARTITIONS)
def one_decision_each(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Every proposal of the day is pending or has exactly one decision; the approved ones, and only they, are promoted.

    Promoted lines that a person removed from MEMORY.md are counted. A MEMORY.md that has lost all of them is an error.
    """
    ends = Ends.of(lake.open(), lake.settings().memory_file)
    return report_by_day(context, "proposals", ONE_END, ends.judge, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="memory_file", name=IDENTITY)
def identity_files(lake: LakeResource) -> dg.AssetCheckResult:
    """The files that agents read before MEMORY.md are there, and every link by which they are found leads to them.

    It is about files, not days, so it has no partitions. `memory identity` shows the same.
    """
    settings = lake.settings()
    verdict = judge_identity(settings, today(settings.zone))
    offenders = "\n".join(f"- {line}" for line in verdict.offenders)
    metadata = verdict.numbers | ({"broken": dg.MetadataValue.md(offenders)} if offenders else {})
    return dg.AssetCheckResult(passed=verdict.passed, severity=dg.AssetCheckSeverity.WARN, metadata=metadata)


def judge_identity(settings: Settings, day: date) -> Verdict:
    found = look_at_identity(settings, day)
    if found is None:
        return Verdict(True, {"judged": f"not set: {NOT_SET}"})
    broken = [looked.line for looked in found.broken]
    numbers: dict[str, float | int | str] = {"files": len(found.files), "links": len(found.links)}
    return Verdict(not broken, numbers, broken)
