"""The page in a real browser: by mouse, by keys alone, in both themes and on a phone; and what hostile sessions can do.

Screenshots go to test-output/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from memory_pipeline.proposals.events import APPROVED, REJECTED, ProposalLog
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.rows import (
    day_after,
    fixable,
    observation,
    observation_id,
    proposal,
    put,
    rule_pattern,
    say,
    workspace,
)
from memory_pipeline_tests.test_browser import SHOTS, note_problems
from memory_pipeline_tests.web.serving import Served, served
from memory_pipeline_tests.web.test_review_session import LINES, filled, p

pytestmark = pytest.mark.slow

HOSTILE = (
    "Never <script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    '<style>*{display:none!important}</style> <base href="https://evil.example/"> <a href="javascript:owned()">x</a>'
    ' " onmouseover="owned() \' {{ 7 * 7 }} {% for %} ]]> --> </textarea></title>\x00 '
    "\x1b[31mred\x1b[0m \u202egp \u2066 [link](javascript:owned()) ![pic](https://evil.example/p.png) &lt;b&gt;"
)
LONG = f"{HOSTILE} {'x' * 200_000} {'y ' * 100_000}"
SCREENS = ("/review", "/memory", "/search?q=npm", "/day", "/session?id=s1", f"/why?id={p(1)}", "/quality")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Served]:
    settings, lake = filled(tmp_path)
    settings.memory_file.write_text("# Memory\n\n## Hard Rules\n- Sign every commit.\n", "utf-8")
    settings.daily_log(day_after(0)).parent.mkdir(parents=True, exist_ok=True)
    settings.daily_log(day_after(0)).write_text(f"# 2025-03-05\n\n- 🔴 {LINES[1]}\n", "utf-8")
    put(lake, "friction_clusters", rule_pattern(1, "Always use uv, never pip."), fixable(2, "CI fails on formatting"))
    with served(settings) as page:
        yield page


def entered(context: BrowserContext, running: Served) -> tuple[Page, list[str]]:
    page, problems = context.new_page(), list[str]()
    note_problems(page, running.origin, problems)
    page.goto(running.first_address)
    expect(page).to_have_url(f"{running.origin}/review")
    return page, problems


@pytest.fixture
def page(browser: Browser, running: Served) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=running.origin)
    opened, problems = entered(context, running)
    yield opened
    context.close()
    assert problems == []


def line(page: Page, number: int) -> str:
    return page.locator(".card").nth(number).get_attribute("id") or ""


def status(running: Served) -> dict[str, str]:
    running.review_session.record_held()
    running.review_session.wait()
    return dict(ProposalLog(running.review_session.workspace.lake).status)


def test_a_review_by_keys_alone(page: Page, running: Served) -> None:
    ids = [line(page, n) for n in range(6)]
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("approve the line")
    page.keyboard.press("a")  # it does nothing meanwhile
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert page.locator(".card.current").get_attribute("id") == ids[0]
    page.keyboard.press("a")
    expect(page.locator("#status")).to_contain_text("Approved")
    expect(page.locator(".card.current")).to_have_attribute("id", ids[1])
    page.keyboard.press("u")
    expect(page.locator("#status")).not_to_contain_text("Approved")
    expect(page.locator(f"[id='{ids[0]}']")).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator(".card.current")).to_have_attribute("id", ids[0])
    for key in "arr":  # quicker than any answer
        page.keyboard.press(key)
    expect(page.locator(".card.current")).to_have_attribute("id", ids[3])
    page.keyboard.press("e")
    box = page.locator(f"[id='{ids[3]}'] textarea")
    expect(box).to_be_focused()
    box.fill("Edited on the page.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status")).to_contain_text("Edited on the page.")
    page.keyboard.press("s")
    expect(page.locator(f"[id='{ids[4]}'] select")).to_be_focused()
    page.keyboard.type("Patterns")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.locator("#status")).to_contain_text("for Patterns")
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", name="Evidence")).to_be_visible()
    found = status(running)
    assert [found[i] for i in ids[:5]] == [APPROVED, REJECTED, REJECTED, APPROVED, APPROVED]
    memory = running.review_session.settings.memory_file.read_text("utf-8")
    assert re.search(rf"## Hard Rules\n(.*\n)*.*Edited on the page\.[^\n]*{ids[3]}", memory)
    assert re.search(rf"## Patterns\n[^\n]*{ids[4]}", memory)


def test_a_review_by_mouse_a_search_and_a_line_that_is_retired(page: Page, running: Served) -> None:
    own = page.locator(f"[id='{p(2)}']")
    expect(own.locator("mark")).to_have_text(LINES[2])
    expect(own.locator(".turn")).to_have_count(5)  # three before, of which there is one, and three after
    own.get_by_role("button", name="Reject").click()
    expect(page.locator(f"[id='{p(2)}']")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(f"[id='{p(2)}']")).to_be_visible()
    page.goto("/search")
    page.get_by_role("searchbox").fill("staging database")
    page.keyboard.press("Enter")
    expect(page.locator(".hits li").first).to_contain_text(LINES[5])
    page.get_by_role("link", name="in its session").first.click()
    expect(page.locator("#it")).to_contain_text(LINES[5])
    expect(page.locator(".margin").first).to_contain_text(LINES[1])
    page.goto("/memory")
    page.get_by_role("button", name="Retire").first.click()
    expect(page.locator("#status")).to_contain_text("Retired: ")
    status(running)
    assert "- ~~Sign every commit.~~ (retired, " in running.review_session.settings.memory_file.read_text("utf-8")


def test_without_script_it_works_too(browser: Browser, running: Served) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=running.origin)
    page, problems = entered(context, running)
    page.locator(f"[id='{p(3)}']").get_by_role("button", name="Approve", exact=False).first.click()
    expect(page.locator("#status")).to_contain_text(f"Approved: {LINES[3]}")
    context.close()
    assert problems == []
    assert status(running)[p(3)] == APPROVED


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 390), *nightly(("dark", 1280), ("light", 390))]
)
def test_everybody_can_use_it(browser: Browser, running: Served, scheme: str, width: int) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 844},
        color_scheme="dark" if scheme == "dark" else "light",
        base_url=running.origin,
    )
    page, problems = entered(context, running)
    SHOTS.mkdir(exist_ok=True)
    for path in SCREENS:
        page.goto(path)
        if path == "/quality":
            expect(page.locator(".report")).to_be_visible(timeout=60_000)
        name = re.sub(r"\W.*", "", path[1:])
        if name == "day":  # with the keys over it
            page.keyboard.press("?")
        page.screenshot(path=SHOTS / f"page-{name}-{scheme}-{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
    context.close()
    assert problems == []


def test_a_first_visit_explains_itself(browser: Browser, tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    SHOTS.mkdir(exist_ok=True)
    with served(settings) as running:
        context = browser.new_context(base_url=running.origin)
        page, problems = entered(context, running)
        for path in ("/review", "/memory", "/search", "/day", "/quality"):
            page.goto(path)
            expect(page.get_by_text("memory run")).to_be_visible()
        page.screenshot(path=SHOTS / "page-first-visit.png")
        context.close()
    assert problems == []
    assert [path.name for path in tmp_path.rglob("*.md")] == []


def test_what_was_said_is_text_on_every_screen(browser: Browser, tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    messages = say(lake, "s1", f"user: {HOSTILE}", f"assistant: {LONG}", f"user: {HOSTILE} npm")
    put(lake, "observations", observation(HOSTILE))
    span = {"message_id": messages[0]["message_id"], "start": 6, "end": 40}
    put(lake, "proposals", proposal(1, HOSTILE, evidence=[span], section=HOSTILE, projects=[HOSTILE]))
    put(lake, "friction_clusters", fixable(2, HOSTILE, change=f"{HOSTILE}\n{HOSTILE}", target_file=HOSTILE))
    settings.memory_file.write_text(f"# Memory\n\n## <b>Rules</b>\n- {HOSTILE}\n", "utf-8")
    settings.daily_log(day_after(0)).parent.mkdir(parents=True, exist_ok=True)
    settings.daily_log(day_after(0)).write_text(f"# 2025-03-05\n\n- {HOSTILE}\n\n<script>owned()</script>\n", "utf-8")
    with served(settings) as running:
        context = browser.new_context(base_url=running.origin)
        page, problems = entered(context, running)
        paths = [*SCREENS, f"/why?id={observation_id(HOSTILE)}", "/why?id=f-20250305-002"]
        paths.append(f"/session?id=s1&at={messages[1]['message_id']}")
        for path in paths:
            page.goto(path)
            assert "owned" not in page.title() or "onerror" in page.title(), path
            text = page.inner_text("body")
            if path not in ("/quality",):
                assert "<script>document.title='owned'</script>" in text, path
            assert not re.search(r"[\x00\x1b\u202e\u2066]", page.content()), path
            assert page.locator("img, iframe, base, style, main script, main link").count() == 0, path
            strange = page.evaluate(
                "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => [a.name, a.value]))"
                ".filter(([n, v]) => n.startsWith('on') || n === 'style' || "
                "(['href', 'src', 'action'].includes(n) && !v.startsWith('/') && !v.startsWith('#')))"
            )
            assert strange == [], path
            expect(page.locator("main h1")).to_be_visible()
        page.goto("/review")
        page.locator(f"[id='{p(1)}']").get_by_role("button", name="Reject").click()
        expect(page.locator("#status")).to_contain_text("Rejected")
        context.close()
    assert problems == []
