"""Weeks of sessions in which friction is planted, and what is planted where.

`weeks.py` makes them out of a bank of wordings (`bank.py`; the texts are `tuning.toml` and `reporting.toml`, which
share none), `scenes.py` tells what happens, `writers.py` writes it as each harness does, `scoring.py` compares what was
found with what was planted, `baselines.py` finds it in two simple ways.
"""
