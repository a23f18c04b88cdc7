"""The line of REVIEW.md that names what was promoted without asking, so that the person can take it back."""

import re
from collections.abc import Sequence

from memory_pipeline.files.blocks import insert_lines, newline_of, split_lines

_COUNT = "_Last updated: "
_ENDING = "Delete or strike out a line in MEMORY.md to take it back."
_NOTICE = re.compile(rf"_Promoted automatically: (?:`p-\d{{8}}-\d{{3,}}`[,.] )+{re.escape(_ENDING)}_\s*$")


def with_notice(text: str, promoted: Sequence[str]) -> str:
    """The text with the line above its last count line; as it is when nothing was promoted."""
    lines = split_lines(text)
    place = max((index for index, line in enumerate(lines) if line.startswith(_COUNT)), default=None)
    if promoted and place is not None:
        ids = ", ".join(f"`{p}`" for p in promoted)
        insert_lines(lines, place, [f"_Promoted automatically: {ids}. {_ENDING}_"], newline_of(text))
    return "".join(lines)


def without_notice(text: str) -> str:
    """The text as it is without that line."""
    return "".join(line for line in split_lines(text) if not _NOTICE.match(line))
