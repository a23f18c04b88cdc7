"""The pictures of README.md, made from the bundled examples: `make pictures` writes them to docs/pictures/.

One program runs at a time, in a temporary home and on loopback only. Pictures of pages need Chromium.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from memory_pipeline_tests.test_browser import BROWSER_ARGS, PAGE_MS, end_group, find_chromium, wait_until_it_answers

TOP = Path(__file__).resolve().parents[1]
PICTURES = TOP / "docs" / "pictures"
MAX_BYTES = 150_000
WIDTH, COLUMNS = 1200, 112
"""Pixels of a screenshot; characters in a line of the terminal."""
APPROVED = ("p-20260302-004", "p-20260305-001", "p-20260304-001", "p-20260302-001")
RECORDED = (
    ("memory recall 'how do we name branches?' --limit 2", None),
    ("memory why p-20260305-001", None),
    ("memory context --project parcel-tracker | head -10", 10),
)
"""The commands of the recording, each with the number of lines that are shown."""
PIXELS = """async png => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const data = new Uint8Array(context.getImageData(0, 0, image.width, image.height).data.buffer), parts = [];
  for (let at = 0; at < data.length; at += 32768) parts.push(String.fromCharCode(...data.subarray(at, at + 32768)));
  return [image.width, image.height, btoa(parts.join(""))];
}"""
"""The pixels of a PNG as base64 of red, green, blue and alpha, decoded by the browser."""
FONT_OF_ANOTHER_HOST = re.compile(r"@font-face \{\{.*?\n    \}\}\n", re.DOTALL)


class Examples:
    """The workspace of the examples after `memory run`, in a temporary home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "DAGSTER_"))}
        self.env |= {"HOME": f"{home}", "PYTHONPATH": f"{TOP}", "MEMORY_TIMEZONE": "UTC", "FORCE_COLOR": "1"}
        self.output("run")
        self.workspace = home / ".memory-pipeline" / "examples"
        self.env |= {"MEMORY_WORKSPACE": f"{self.workspace}", "MEMORY_SESSION_DIRS": f"{self.workspace / 'sessions'}"}

    def output(self, *words: str) -> str:
        """What `memory` prints to stdout, with colours, and with `~` in place of the home."""
        made = subprocess.run(_command(words), cwd=self.home, env=self.env, capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"memory {shlex.join(words)}: {made.stderr}")
        return made.stdout.replace(f"{self.home}", "~")

    @contextmanager
    def serving(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """The server that `memory` starts, and the address that it names, until the end of the block."""
        log = self.home / "server.log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                _command(words), cwd=self.home, env=self.env, stdout=out, stderr=out, start_new_session=True
            )
        try:
            while not (named := re.search(r"http://127\.0\.0\.1:\d+\S*", log.read_text("utf-8", "replace"))):
                if server.poll() is not None:
                    raise SystemExit(log.read_text("utf-8", "replace"))
                time.sleep(0.2)
            yield server, named[0]
        finally:
            end_group(server)


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "memory_pipeline.cli.main", *words]


@contextmanager
def open_page(address: str, height: int) -> Iterator[Page]:
    """A page of a fresh browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=BROWSER_ARGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": height})
        expect.set_options(timeout=PAGE_MS)
        page.goto(address)
        yield page
        browser.close()


def keep(page: Page, name: str, height: int) -> None:
    """Store the upper part of the page as a PNG with at most 256 colours; rarer ones become the nearest of these."""
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    browser = page.context.browser
    assert browser is not None
    wide, high, encoded = browser.new_page().evaluate(PIXELS, b64encode(shot).decode())
    pixels = np.frombuffer(b64decode(encoded), np.uint8).reshape(-1, 4)[:, :3]
    colours, index, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    distances = ((colours[:, None].astype(int) - palette[None].astype(int)) ** 2).sum(axis=2)
    rows = distances.argmin(axis=1).astype(np.uint8)[index.ravel()].reshape(high, wide)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0),
        b"PLTE": palette.tobytes(),
        b"IDAT": zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9),
        b"IEND": b"",
    }
    body = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    (PICTURES / name).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(body))


def review(examples: Examples) -> None:
    """The review page with its first proposal."""
    with examples.serving("open", "--no-browser") as (_, address), open_page(address, 760) as page:
        expect(page.locator(".card.current")).to_be_visible()
        keep(page, "review.png", 720)


def quality(examples: Examples) -> None:
    """The quality report as far as the results by day; in its first line `~` stands for the home."""
    examples.output("admin", "report")
    report = examples.workspace / "reports" / "quality.html"
    report.write_text(report.read_text("utf-8").replace(f"{examples.home}", "~"), "utf-8")
    with open_page(report.as_uri(), 1000) as page:
        end = page.get_by_role("heading", name="Over all days").bounding_box()
        assert end is not None
        keep(page, "quality.png", int(end["y"]) - 10)


def graph(examples: Examples) -> None:
    """All assets in Dagster's UI from top to bottom, without the lists beside them."""
    with examples.serving("ui", "--port", "3987") as (server, address):
        wait_until_it_answers(server, f"{address}/server_info")
        with open_page(f"{address}/asset-groups", 1300) as page:
            expect(page.locator("foreignObject").first).to_be_visible()
            page.get_by_text("Hide navigation").click()
            page.locator("button:has([aria-label=panel_show_right])").click()
            page.locator("button:has([aria-label=settings])").last.click()
            page.get_by_role("menuitem", name="vertical orientation").click()
            page.keyboard.press("Escape")
            page.wait_for_timeout(1000)
            page.mouse.dblclick(WIDTH - 250, 300)  # fits the graph to its frame
            page.wait_for_timeout(2000)
            keep(page, "graph.png", 1300)


def terminal(examples: Examples) -> None:
    """The commands of the recording with their output, as one drawing."""
    examples.output("review", *(word for proposal in APPROVED for word in ("--approve", proposal)))
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for shown, lines in RECORDED:
        words = shlex.split(shown.partition(" | ")[0])[1:]
        console.print(Text(f"$ {shown}", style="bold"))
        output = "\n".join(examples.output(*words).splitlines()[:lines])
        console.print(Text.from_ansi(output), end="\n" if (shown, lines) == RECORDED[-1] else "\n\n")
    drawing = console.export_svg(
        title="memory", code_format=FONT_OF_ANOTHER_HOST.sub("", CONSOLE_SVG_FORMAT), unique_id="terminal"
    )
    (PICTURES / "terminal.svg").write_text(drawing, "utf-8")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        examples = Examples(Path(home))
        for draw in (review, quality, graph, terminal):
            draw(examples)
    for picture in sorted(PICTURES.iterdir()):
        print(f"{picture.stat().st_size:>8,}  {picture.relative_to(TOP)}")
        if picture.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{picture.name} is larger than {MAX_BYTES:,} bytes.")


if __name__ == "__main__":
    main()
