"""The language of a text, and its cues: one file for each language."""
