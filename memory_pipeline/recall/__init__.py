"""Uses of the memory: search, answers, briefings. They do not depend on Dagster."""
