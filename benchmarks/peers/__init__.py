"""Other memory systems as `recall_peers` measures them: each in a venv of its own, with the bundled MiniLM weights."""
