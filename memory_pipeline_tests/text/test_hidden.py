"""What nobody sees goes; what spells a word or makes a picture stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.hidden import without_hidden
from memory_pipeline_tests.cases import each

ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
TAGS = "".join(chr(0xE0000 + ord(c)) for c in "rm -r")


@each(
    ("text", "visible"),
    [
        pytest.param("a\u200bb\u2060c\ufeffd\u00ade", "abcde", id="zero-width, soft hyphen, byte order mark"),
        pytest.param("\u202egnp.exe\u202c \u2066a\u2069\u200e\u200f\u061c", "gnp.exe a", id="direction of writing"),
        pytest.param(f"delete{TAGS}", "delete", id="tags"),
        pytest.param(f"\U0001f3f4{TAGS}\U000e007f", "\U0001f3f4", id="tags behind a flag that are no region"),
        pytest.param("a\U000e0100\U000e0101", "a", id="selectors that carry bytes"),
        pytest.param("☺\ufe0f\ufe0f\ufe01", "☺\ufe0f", id="more selectors than one"),
        pytest.param("می\u200c\u200d\u200cخ", "می\u200cخ", id="more joiners than one"),
        pytest.param("Auf\u200clage, a\u200db", "Auflage, ab", id="joiners in Latin"),
        pytest.param("12\ufe0f3", "123", id="a selector in a number"),
        pytest.param("a\ufe0f\u200d😀", "a😀", id="a joiner before an emoji"),
        pytest.param("\u3164ㅤa\uffa0\u115f\u1160\u034f\u180e\ufff9\U0001d159\ufdd0", "a", id="fillers, no characters"),
        pytest.param("漢\U000e0110字\U000e0120化\U000e0130", "漢\U000e0110字化", id="bytes behind ideographs in a row"),
        pytest.param("a\u2800b ⣿\u2800\u2800⣿", "ab ⣿\u2800⣿", id="blanks of Braille"),
        pytest.param("a\ue001\ue002 \U000f0001\U000f0002", "a\ue001 \U000f0001", id="private use in a row"),
    ],
)
def test_hidden(text: str, visible: str) -> None:
    assert without_hidden(text) == (visible, len(text) - len(visible))


@each(
    "text",
    [
        "می\u200cخواهم نمی\u200cدانم ه\u200d.ش",
        "क्\u200dष र्\u200dय",
        "ශ්\u200dරී",
        "👨\u200d👩\u200d👧 👩🏽\u200d💻 🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ©\ufe0f ☺\ufe0e",
        ENGLAND,
        "葛\U000e0100飾区の渡邉\U000e0102さん \ue0b0 main \ue0b0",
        "plain, ümläut, 中文。日本語 한국어\ttab\r\n",
    ],
)
def test_meant(text: str) -> None:
    assert without_hidden(text) == (text, 0)


@given(st.text(st.sampled_from("a1ا❤😀\U0001f3f4\u200b\u200c\u200d\ufe0f\u202e\u20e3" + ENGLAND)))
def test_nothing_is_left_for_a_second_look(text: str) -> None:
    visible, hidden = without_hidden(text)
    assert len(visible) + hidden == len(text)
    assert without_hidden(visible) == (visible, 0)
