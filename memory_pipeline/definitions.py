"""The code location that Dagster loads: the component instances in `defs/instances/`."""

from pathlib import Path

import dagster as dg

import memory_pipeline
from memory_pipeline.defs import instances


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the workspace that the environment names, and of other instances that were scaffolded."""
    return dg.ComponentTree.from_module(instances, Path(memory_pipeline.__file__).parent.parent).build_defs()
