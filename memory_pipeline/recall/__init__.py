"""The use of what is remembered: search, answers, briefings. No Dagster here."""
