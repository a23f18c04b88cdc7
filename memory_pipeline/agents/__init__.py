"""Agents that are shown the memory: lines in the files that they read, and hooks that they call."""
