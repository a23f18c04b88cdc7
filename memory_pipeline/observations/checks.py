"""Checks on observations: that they are grounded, that they condense, that they are there."""

from datetime import date

import dagster as dg
import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.observations.grounding import invented_times, missing_evidence
from memory_pipeline.orchestration import PARTITIONS, LakeResource, Verdict, judge_ratio, report_by_day
from memory_pipeline.settings import Settings

TIMESTAMPS = "hallucinated_timestamps"
EVIDENCE = "evidence_is_verbatim"
COMPRESSION = "compression_ratio"
SILENT_ZERO = "no_silent_zero"
BAND = (0.002, 0.45)
"""Tokens of the observations per token said. Below: something was lost; above: it was copied, not observed.
The upper end is what short windows may use, see `extractive.SHORT_SHARE`."""
MIN_TOKENS_SAID = 200
"""Below so little said, a ratio means nothing."""


@dg.asset_check(asset="observations", name=TIMESTAMPS, partitions_def=PARTITIONS, blocking=True)
def hallucinated_timestamps(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Every time that an observation bears or mentions occurs in its window."""
    tables, settings = lake.open(), lake.settings()
    return report_by_day(
        context,
        "observations",
        TIMESTAMPS,
        lambda day: judge_timestamps(tables, settings, day),
        dg.AssetCheckSeverity.ERROR,
    )


@dg.asset_check(asset="observations", name=EVIDENCE, partitions_def=PARTITIONS, blocking=True)
def evidence_is_verbatim(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Every observation's spans lie in the messages that they name, and carry its words."""
    tables = lake.open()
    return report_by_day(
        context, "observations", EVIDENCE, lambda day: judge_evidence(tables, day), dg.AssetCheckSeverity.ERROR
    )


@dg.asset_check(asset="observations", name=COMPRESSION, partitions_def=PARTITIONS)
def compression_ratio(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Tokens of the observations per token said lie in the band: condensed, and not nothing."""
    tables = lake.open()
    return report_by_day(
        context, "observations", COMPRESSION, lambda day: judge_compression(tables, day), dg.AssetCheckSeverity.WARN
    )


@dg.asset_check(asset="observations", name=SILENT_ZERO, partitions_def=PARTITIONS)
def no_silent_zero(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """A day with windows to observe has observations."""
    tables = lake.open()
    return report_by_day(
        context, "observations", SILENT_ZERO, lambda day: judge_silent_zero(tables, day), dg.AssetCheckSeverity.ERROR
    )


def judge_timestamps(lake: Lake, settings: Settings, day: date) -> Verdict:
    windows = {
        key: list(frame.select("said_at", "text").iter_rows())
        for (key,), frame in lake.read("messages", [day]).partition_by("dedupe_key", as_dict=True).items()
    }
    observations = lake.read("observations", [day])
    offenders = []
    for o in observations.iter_rows(named=True):
        wrong = invented_times(o, windows.get(o["dedupe_key"], []), settings.zone)
        if wrong:
            offenders.append(f"{o['observation_id']} has {', '.join(wrong)}: {o['text'][:120]}")
    return Verdict(not offenders, {"checked": observations.height, "invented": len(offenders)}, offenders)


def judge_evidence(lake: Lake, day: date) -> Verdict:
    texts = dict(lake.read("messages", [day]).select("message_id", "text").iter_rows())
    observations = lake.read("observations", [day])
    found = ((o["observation_id"], missing_evidence(o, texts)) for o in observations.iter_rows(named=True))
    offenders = [f"{observation_id}: {why}" for observation_id, why in found if why]
    return Verdict(not offenders, {"checked": observations.height, "ungrounded": len(offenders)}, offenders)


def judge_compression(lake: Lake, day: date) -> Verdict:
    windows = lake.read("windows", [day]).filter(pl.col("observed"))
    said = int(windows["tokens_said"].sum())
    tokens = int(lake.read("observations", [day])["tokens"].sum())
    return judge_ratio(tokens, said, BAND, MIN_TOKENS_SAID)


def judge_silent_zero(lake: Lake, day: date) -> Verdict:
    windows = lake.read("windows", [day]).filter(pl.col("observed"))
    seen = set(lake.read("segments", [day])["dedupe_key"])
    observations = lake.read("observations", [day]).height
    unseen = [key for key in windows["dedupe_key"] if key not in seen]
    offenders = [f"window {key[:12]} was to be observed and has no segment" for key in unseen]
    enough = int(windows["tokens_said"].sum()) >= MIN_TOKENS_SAID
    if enough and not observations:
        offenders.append(f"{windows.height} windows were to be observed and none gave an observation")
    return Verdict(not offenders, {"windows": windows.height, "observations": observations}, offenders)
