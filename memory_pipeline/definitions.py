"""The code location that Dagster loads; its parts are in `defs/`."""

import dagster as dg

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.settings import load_settings


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the workspace that the environment names."""
    return build_definitions(load_settings())
