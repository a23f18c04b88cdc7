"""What agents call. `memory_pipeline_hook.py` runs with Python's own library alone; the scripts are put together from
`ask.js` and a file per agent."""
