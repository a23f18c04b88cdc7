"""What was said is shown by a Markdown renderer as it was said."""

from __future__ import annotations

import html
import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory_pipeline.markdown.blocks import escaped, unescaped

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TEXTS = st.text(st.sampled_from("ab 1.)*_`[](){}<>&;!|\\#+-=~$\n\"'/:"), min_size=1, max_size=40)


@given(TEXTS)
@example("![a](/graphql?query=mutation{wipeAssets})")
@example("<img src=x onerror=alert(1)>")
@example("&lt;b&gt; and <!-- memory:x -->")
@example("[a](javascript:alert(1)) [b]: http://x")
@example("1. one")
@example("2) two")
@example("--- | ---")
@example("| a | b |\n|---|---|\n| c | d |")
@example("# head\n===\n\n    code\n```\nfence")
def test_it_reads_as_it_was(text: str) -> None:
    wanted = " ".join(text.split())
    rendered = RENDERER.render(f"* {escaped(text)}\n")
    shown = re.fullmatch(r"<ul>\n<li>(.*)</li>\n</ul>\n", rendered, re.S)
    assert shown and "<" not in shown[1]
    assert html.unescape(shown[1]) == wanted


@given(TEXTS)
@example("&lt;b&gt; and &copy; and &#39;")
@example("1. one")
def test_the_text_comes_back(text: str) -> None:
    assert unescaped(escaped(text)) == " ".join(text.split())


@given(st.lists(TEXTS.filter(str.strip), min_size=2, max_size=2))
def test_in_a_cell_of_a_table_too(texts: list[str]) -> None:
    left, right = map(escaped, texts)
    rendered = RENDERER.render(f"| a | b |\n| --- | --- |\n| {left} | {right} |\n")
    cells = re.findall(r"<td>(.*?)</td>", rendered)
    assert [html.unescape(cell) for cell in cells] == [" ".join(text.split()) for text in texts]
