"""Estimates of token counts without a tokenizer."""

from __future__ import annotations

from memory_pipeline.text.regex import deferred

PROSE = 3.5
"""Characters per token of messages of people and models, in scripts with spaces."""
TOOL = 3.0
"""Characters per token of tool calls and results: code, paths and logs."""
BY_SCRIPT, BY_FOUR = "script", "chars4"
"""Methods of estimation: by the scripts of the text, or four characters per token for any text."""
_HAN = deferred(r"[\u3000-\u3040\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff65]")
_KANA = deferred(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL = deferred(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
HAN, KANA, HANGUL = 97, 85, 100
"""Hundredths of a token per character of Chinese including its punctuation, of Japanese kana and of Korean Hangul. The
values are between those of two tokenizers: a Chinese character is .83 of a token in o200k_base and 1.04 in the one that
Anthropic published, a kana .71 and 1.00. `text/counted.json` of the tests has counts of both."""


class _Method:
    """The method of this process from the settings; otherwise thirty callers would have to pass it on."""

    current: str = BY_SCRIPT


def estimate_by(method: str) -> None:
    """Set the method of estimation for this process."""
    _Method.current = method


def method() -> str:
    """The method of this process, which is part of the fingerprint of a day."""
    return _Method.current


def estimate(text: str, *, tool: bool = False) -> int:
    """The approximate number of tokens of a text for a language model; 0 only for an empty text."""
    if _Method.current == BY_FOUR:
        return -(-len(text) // 4)
    per_token = int((TOOL if tool else PROSE) * 10)
    if text.isascii():
        return -(-len(text) * 10 // per_token)
    han, kana, hangul = (len(script.findall(text)) for script in (_HAN, _KANA, _HANGUL))
    spaced = 1000 * (len(text) - han - kana - hangul)
    return -(-(spaced + per_token * (HAN * han + KANA * kana + HANGUL * hangul)) // (100 * per_token))
