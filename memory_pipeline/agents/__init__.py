"""Integration with agents: lines in the files that they read, and hooks that they call."""
