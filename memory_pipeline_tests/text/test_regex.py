"""Patterns that are compiled when they are first used."""

import re
from unittest.mock import patch

import pytest

from memory_pipeline.text.regex import deferred


def test_it_is_compiled_at_its_first_use() -> None:
    with patch("re.compile", wraps=re.compile) as compiled:
        pattern = deferred(r"(?P<word>[a-z]+)", re.I)
        assert not compiled.called
        assert [found["word"] for found in pattern.finditer("Ab 1 cd")] == ["Ab", "cd"]
        assert (pattern.groupindex, pattern.pattern) == ({"word": 1}, r"(?P<word>[a-z]+)")


def test_a_wrong_pattern_is_refused_then() -> None:
    wrong = deferred("(")
    with pytest.raises(re.error):
        wrong.search("")
