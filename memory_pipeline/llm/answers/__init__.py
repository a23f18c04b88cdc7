"""Answers of language models: the text without what hides in it, JSON that fits a schema, list lines with their marks,
and answers that are none. Observing, reflecting and friction read what they asked for with these.
"""
