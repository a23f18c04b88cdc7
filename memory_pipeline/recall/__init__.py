"""Uses of the memory: search, answers, briefings. Independent of Dagster."""
