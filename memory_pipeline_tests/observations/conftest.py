"""The machine of the tests of sessions: what is observed of files that grow is followed on it too."""

from memory_pipeline_tests.sessions.conftest import instance, machine

__all__ = ["instance", "machine"]
