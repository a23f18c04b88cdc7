"""Invisible characters: they pass instructions to a model that a reader does not see, and split secrets.

They are those that Unicode allows to ignore in display (`Default_Ignorable_Code_Point`), interlinear annotation marks,
characters with an empty glyph (the Braille blank, the musical null notehead) and noncharacters. Characters that are
part of the spelling or of an image are kept: the joiners of Arabic, Persian, Indic and other scripts that join letters,
the joiner between two emoji, emoji variation selectors, the flags of England, Scotland and Wales, the variant of an
ideograph in a name, a blank after Braille, and an icon of a font in the private use area. Only one of each in a row is
legitimate, so none of them can carry a message. Other characters that only select a glyph or the direction of writing
are removed: the words stay the same without them.
"""

from __future__ import annotations

from memory_pipeline.text.regex import deferred

_HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\u2800\U0001d159\ufdd0-\ufdef" + "".join(f"{chr(end - 1)}{chr(end)}" for end in range(0xFFFF, 0x110000, 0x10000))
)
_JOINING = (
    r"\u0600-\u061b\u061d-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00011fff"
)
_EMOJI = r"\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_REGIONS = "|".join("".join(chr(0xE0000 + ord(c)) for c in region) for region in ("gbeng", "gbsct", "gbwls"))
"""Each is spelt in tag characters, between the black flag and the cancel tag."""
_IDEOGRAPH = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_FORM = r"\ufe00-\ufe02\U000e0100-\U000e01ef"
"""Variation selectors of an ideograph; two adjacent ideographs that have one are no name, but a message."""
_PRIVATE = r"\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_CANDIDATE = deferred(f"[{_HIDDEN}{_PRIVATE}]")
"""The first character of every match of `_MEANT_OR_HIDDEN`: searching a character set is many times as fast."""
_ANY = deferred(f"[{_HIDDEN}]|[{_PRIVATE}]{{2}}")
_MEANT_OR_HIDDEN = deferred(
    rf"((?<=[{_JOINING}])[\u200c\u200d]"
    rf"|(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    rf"|(?<=\U0001f3f4)(?:{_REGIONS})\U000e007f"
    rf"|(?<=[{_IDEOGRAPH}])(?<![{_FORM}][{_IDEOGRAPH}])[{_FORM}]"
    rf"|(?<=[\u2801-\u28ff])\u2800)"
    rf"|[{_HIDDEN}]|(?<=[{_PRIVATE}])[{_PRIVATE}]"
)


_ASCII = bytes(range(128))
_ESCAPE = deferred(r"\x1b(?:\[[0-9;?]{0,40}[A-Za-z]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\))?")
_CONTROL = deferred(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def plain(text: str) -> str:
    """The text as a page shows it: without invisible characters and those that move a cursor or change the direction of
    writing; line breaks and tabs are kept."""
    return _CONTROL.sub("", without_hidden(_ESCAPE.sub("", text.replace("\r\n", "\n")))[0])


def without_hidden(text: str) -> tuple[str, int]:
    """The text without its hidden characters, and their number."""
    if text.isascii():
        return text, 0
    # only characters outside ASCII are searched, which is many times as fast in a long text of ASCII
    others = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
    if not _ANY.search(others):
        return text, 0
    visible, before = _without_hidden_once(text), text
    # removal may create new adjacent pairs
    while len(visible) < len(before):
        visible, before = _without_hidden_once(visible), visible
    return visible, len(text) - len(visible)


def _without_hidden_once(text: str) -> str:
    pieces, end = [], 0
    for candidate in _CANDIDATE.finditer(text):
        if (start := candidate.start()) >= end and (found := _MEANT_OR_HIDDEN.match(text, start)):
            pieces += [text[end:start], found[1] or ""]
            end = found.end()
    return "".join(pieces) + text[end:] if pieces else text
