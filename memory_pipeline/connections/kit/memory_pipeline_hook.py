"""The location of the hook in version 0.1. Settings of agents name this file until `memory agents hooks install` is run
again; the next release drops it."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[2] / "agents" / "kit" / "memory_pipeline_hook.py"), run_name="__main__")
