"""What the catalogue says of each asset beside its rows."""

import dagster as dg

from memory_pipeline.defs.shown import COLUMNS_FROM, EVERY_MORNING
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.loaded import defs

REPOSITORY = defs.get_repository_def()
GRAPH = REPOSITORY.asset_graph
NAMES = {key.to_user_string() for key in GRAPH.materializable_asset_keys}


def test_every_asset_has_an_owner_a_stage_and_kinds() -> None:
    for name in NAMES:
        node = GRAPH.get(dg.AssetKey(name))
        assert node.owners and node.tags["stage"] and node.kinds, name


def test_a_column_comes_from_one_that_is_there() -> None:
    for name, columns in COLUMNS_FROM.items():
        upstream = {key.to_user_string() for key in GRAPH.get_ancestor_asset_keys(dg.AssetKey(name))}
        for column, (table, of) in columns.items():
            assert column in TABLES[name].columns and of in TABLES[table].columns, (name, column)
            assert table in upstream, f"{name} does not come from {table}"
        lineage = GRAPH.get(dg.AssetKey(name)).metadata["dagster/column_lineage"]
        assert set(lineage.deps_by_column) == set(columns)


def test_what_is_made_every_morning_is_red_when_it_was_not() -> None:
    """The jobs of six and seven make all of it, and nothing else has a deadline."""
    made: set[str] = set()
    for job in ("reflect_job", "friction_job"):
        made |= {key.to_user_string() for key in REPOSITORY.get_job(job).asset_layer.executable_asset_keys}
    assert made == EVERY_MORNING
    with_deadline = {name for name in NAMES if GRAPH.get(dg.AssetKey(name)).freshness_policy}
    assert with_deadline == EVERY_MORNING


def test_a_day_that_is_too_young_to_be_distilled_is_no_partition() -> None:
    days, distilled = (GRAPH.get(dg.AssetKey(n)).partitions_def for n in ("sessions", "day_distillations"))
    assert days and distilled
    assert distilled.get_partition_keys() == days.get_partition_keys()[:-3]
