"""The machine of the tests of sessions: what is observed of files that grow is followed on it too."""

from memory_pipeline_tests.sessions.conftest import instance, machine, only_two_stages

__all__ = ["instance", "machine", "only_two_stages"]
