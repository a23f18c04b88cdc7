"""Session transcripts of coding agents, turned day by day into memory that a person reviews."""

__version__ = "0.1.0"
