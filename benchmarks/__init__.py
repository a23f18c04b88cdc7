"""Measurements of memory_pipeline, a module each: `python -m benchmarks.NAME --help`; README.md lists them."""
