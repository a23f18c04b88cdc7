"""Memory at the moment of action: hints on tool calls, and approved rules that are checked by code."""
