"""The page in a real browser: nothing that was said runs in it, and it can be read by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from memory_pipeline.quality.page import write_report
from memory_pipeline.quality.report import make_report
from memory_pipeline.quality.results import Result
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.rows import DAY, at, day_after, observation, observation_id, proposal, put, say, workspace
from memory_pipeline_tests.test_browser import SHOTS, note_problems

pytestmark = pytest.mark.slow

HOSTILE = (
    "Never <script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> {{ 7 * 7 }} \u202egp"
)
SECTION = "<b>Hard</b> Rules"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    settings, lake = workspace(tmp_path)
    for n in range(20):
        say(lake, "s1", f"user: {HOSTILE}", day=day_after(n))
        put(lake, "observations", observation(HOSTILE, day=day_after(n), priority="high", trust="user"))
    put(lake, "proposals", proposal(1, HOSTILE, section=SECTION))
    days = [day_after(n) for n in range(20)]
    offender = f"{observation_id(HOSTILE)} has {HOSTILE}"
    results = [
        Result("observations", "compression_ratio", day, n % 5 > 0, False, HOSTILE, {"ratio": 0.1 * n}, (offender,))
        for n, day in enumerate(days)
    ]
    results.append(Result("memory_file", "one_decision_each", None, False, True, "MEMORY.md is gone"))
    about = {"observations/compression_ratio": HOSTILE, "memory_file/one_decision_each": "Of all."}
    made = make_report(Workspace(settings, lake), results, about, at(day=day_after(20)))
    return write_report(made, settings.report_dir)


@pytest.fixture
def shown(browser: Browser, report: Path) -> Iterator[Page]:
    problems: list[str] = []
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
    note_problems(page, report.as_uri(), problems)
    page.goto(report.as_uri())
    yield page
    page.close()
    assert problems == []


def test_what_was_said_is_text(shown: Page) -> None:
    assert shown.title() == "Quality of memory"
    assert shown.locator("script, img, iframe, link").count() == 0
    shown.locator("details").first.click()
    text = shown.inner_text("body")
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert SECTION in text
    assert "\u202e" not in text


def test_it_says_what_failed_and_leads_to_the_day(shown: Page) -> None:
    assert "5 of 21 results failed on 4 days, 1 of them errors." in shown.inner_text(".verdict")
    shown.get_by_role("link", name="!").first.click()
    assert shown.url.endswith(f"#day-{day_after(15)}")
    assert shown.locator(f"#day-{DAY}").count() == 1
    drawings = shown.get_by_role("img")
    labels = [drawings.nth(n).get_attribute("aria-label") or "" for n in range(drawings.count())]
    assert any(label.startswith(f"Compression: 20 days from {DAY}") for label in labels), labels


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1200), ("light", 390), *nightly(("light", 1200))])
def test_everybody_can_read_it(browser: Browser, report: Path, scheme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(report.as_uri())
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"quality-{scheme}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    page.close()
    assert found.violations_count == 0, found.generate_report()
