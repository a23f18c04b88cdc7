"""`memory ui` in a real browser, as a person uses it. Screenshots of what it shows go to test-output/."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

import memory_pipeline
from memory_pipeline_tests.cases import nightly

PACKAGE = Path(memory_pipeline.__file__).parent
SHOTS = PACKAGE.parent / "test-output"
ASSETS = ["sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections"]
ASSETS += ["proposals", "memory_file", "friction_clusters", "message_embeddings", "summary_embeddings"]
WITH_JOBS_OF_THEIR_OWN = ["pool_reflections", "day_distillations", "week_distillations", "month_distillations"]
WITH_JOBS_OF_THEIR_OWN += ["memory_effect", "quality_report"]
"""They stand at the edge of the graph, outside of the window at first."""
ALL = len(ASSETS) + len(WITH_JOBS_OF_THEIR_OWN)
AUTOMATIONS = ("session_sensor", "review_sensor", "reflect_at_six", "friction_at_seven")
SESSIONS = ("pi/2026-03-02*", "claude/aa99e079*", "codex/rollout-2026-03-03*")
"""Examples of two days: each run of Dagster's daemon is two processes of its own."""
EXAMPLE_DAYS = ("2026-03-02", "2026-03-03")
DAY = EXAMPLE_DAYS[0]
ROW_COUNT = "dagster/row_count"
START_SECONDS, STOP_SECONDS, PAGE_MS, RUNS_MS = 500, 120, 120_000, 600_000
BROWSER_ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
BROWSER_ARGS += ["--disable-background-networking", "--disable-component-update"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("of_all_assets", [False, *nightly(True)])
def test_a_day_from_the_graph_to_its_checks(tmp_path: Path, of_all_assets: bool) -> None:
    """With `of_all_assets`, a backfill from the graph too, whose runs take as long as all the rest."""
    chromium = find_chromium()
    with running_ui(tmp_path) as base, open_browser(chromium, tmp_path, base) as page:
        graph_shows_every_asset(page)
        automations_work(page)
        several_days_are_one_run(page)
        run = materialize_by_clicking(page)
        numbers = observations_tell_of_themselves(page, run)
        numbers_are_plotted(page)
        assert check_passed(page, "times_are_recorded", run) == {"checked": numbers[ROW_COUNT], "invented": 0}
        assert check_passed(page, "compression_ratio", run)["ratio"] == numbers["compression_ratio"] > 0
        if of_all_assets:
            everything_from_the_graph_is_a_backfill(page)  # after what is looked at of that one run
            the_pool_was_left_alone(page)


def find_chromium() -> str:
    """The browser's path. Without one the test skips, but not in CI, where it has to be there."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "no chromium, chromium-browser or google-chrome on PATH; `apt-get install chromium` brings one"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return found


@contextmanager
def running_ui(tmp_path: Path) -> Iterator[str]:
    """`memory ui` on some of the examples, in a process group of its own; its log is printed when the test fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port, log = free.getsockname()[1], tmp_path / "ui.log"
    sessions = tmp_path / "sessions"
    for path in (path for pattern in SESSIONS for path in (PACKAGE / "examples").glob(pattern)):
        target = sessions / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    env = os.environ | {
        "HOME": f"{tmp_path}",
        "MEMORY_WORKSPACE": f"{tmp_path / 'workspace'}",
        "MEMORY_SESSION_DIRS": f"{sessions}",
        "MEMORY_DEFAULT_SESSION_DIRS": "false",
        "MEMORY_TIMEZONE": "UTC",
        "MEMORY_START_DATE": "2026-03-01",
    }
    command = [sys.executable, "-m", "memory_pipeline.cli.main", "ui", "--port", f"{port}"]
    with log.open("wb") as out:
        ui = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_until_it_answers(ui, f"http://127.0.0.1:{port}/server_info")
        yield f"http://127.0.0.1:{port}"
    except BaseException:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*[line for line in lines if " - DEBUG - " not in line][-100:], sep="\n")
        raise
    finally:
        end_group(ui)


def wait_until_it_answers(ui: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        assert ui.poll() is None and time.monotonic() < deadline, f"the UI does not answer (ended: {ui.returncode})"
        time.sleep(0.5)


def end_group(leader: subprocess.Popen[bytes]) -> None:
    """Ctrl-C for the whole group, as in a terminal; what has not ended after a while is killed."""
    deadline = time.monotonic() + STOP_SECONDS
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGINT)
        while time.monotonic() < deadline:
            leader.poll()  # ended, but not waited for, it would still count as one of the group
            os.killpg(leader.pid, 0)
            time.sleep(0.2)
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait(STOP_SECONDS)


@contextmanager
def open_browser(chromium: str, tmp_path: Path, base: str) -> Iterator[Page]:
    """A page in a fresh profile. Nothing may go wrong in it, and nothing may be asked of another host."""
    problems: list[str] = []
    expect.set_options(timeout=PAGE_MS)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            headless=True,
            args=BROWSER_ARGS,
            base_url=base,
            viewport={"width": 1920, "height": 1200},
        )
        page = context.pages[0]
        note_problems(page, base, problems)
        try:
            yield page
        except BaseException:
            print("In the browser:", *problems, sep="\n")
            page.screenshot(path=SHOTS / "failure.png")
            raise
        finally:
            context.close()
    assert not problems, "\n".join(problems)


def note_problems(page: Page, base: str, problems: list[str]) -> None:
    """Errors of scripts and of the console, failed requests, and requests that leave this machine."""
    note, left = problems.append, "net::ERR_ABORTED"  # the UI polls, and leaving a page cancels what is under way
    page.on("pageerror", lambda error: note(f"page error: {error}"))
    page.on("console", lambda m: note(f"console: {m.text}") if m.type == "error" else None)
    page.on("response", lambda r: note(f"{r.status} for {r.url}") if r.status >= 400 else None)
    page.on("requestfailed", lambda r: note(f"{r.failure} for {r.url}") if r.failure != left else None)
    page.on("request", lambda r: None if r.url.startswith((base, "data:", "blob:")) else note(f"elsewhere: {r.url}"))


def graph_shows_every_asset(page: Page) -> None:
    """The global lineage; several groups are folded at first."""
    page.goto("/asset-groups")
    nodes = page.locator("foreignObject")
    expect(nodes.first).to_be_visible()
    if not nodes.get_by_text("memory_file", exact=True).count():
        page.mouse.click(1300, 1000, button="right")
        page.get_by_role("menuitem", name="Expand all groups").click()
    for asset in ASSETS:
        expect(nodes.get_by_text(asset, exact=True)).to_be_visible()
    screenshot(page, "1-graph")


def automations_work(page: Page) -> None:
    """All are on, and the session sensor has built the example days; then no run of its own is in the way."""
    page.goto("/automation")
    for name in AUTOMATIONS:
        expect(rows(page, name).locator("input[type=checkbox]:checked")).to_have_count(1)
    screenshot(page, "2-automation")
    page.goto("/runs")
    for day in EXAMPLE_DAYS:
        # its first run: where the machine is slow, the sensor asks for a day again once the days before it are there
        by_sensor = rows(page, f"partition: {day}").filter(has_text="session_sensor").last
        expect(by_sensor).to_contain_text(re.compile("Success|Failure|Canceled"), timeout=RUNS_MS)
        expect(by_sensor).to_contain_text("Success", timeout=1)
    screenshot(page, "3-runs-of-the-sensor")


def several_days_are_one_run(page: Page) -> None:
    """A range of days of the job; the runs of the sensor are over."""
    page.goto("/jobs")
    shown(page, "day_job").click()
    dialog = choose_days(page, f"[{EXAMPLE_DAYS[0]}...{EXAMPLE_DAYS[-1]}]", len(ASSETS))
    expect(dialog).to_contain_text("2 partitions")
    dialog.get_by_role("button", name="Launch backfill", exact=True).click()
    expect(dialog).to_be_hidden()
    page.goto("/runs")
    page.get_by_text("Show runs within backfills").click()
    expect(rows(page, "Backfill: ")).to_contain_text(re.compile("Success|Failure"), timeout=RUNS_MS)
    expect(rows(page, "Backfill: ")).to_have_count(1)
    expect(rows(page, "Backfill: ")).to_contain_text("Success", timeout=1)
    screenshot(page, "3-run-of-two-days")


def choose_days(page: Page, wanted: str, assets: int) -> Locator:
    """The dialog of "Materialize all" with these days chosen."""
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"materialize {assets} assets")
    days, recent_only = dialog.get_by_placeholder(re.compile("^ex: ")), dialog.get_by_text("Show all partitions")
    expect(days.or_(recent_only).first).to_be_visible()
    if recent_only.is_visible():
        recent_only.click()
    days.fill(wanted)
    days.press("Enter")
    return dialog


def materialize_by_clicking(page: Page) -> str:
    """Materialize a day of the job and follow the run to its end; the run's id."""
    page.goto("/jobs")
    shown(page, "day_job").click()
    dialog = choose_days(page, DAY, len(ASSETS))
    launch = dialog.get_by_role("button", name="Launch 1 run", exact=True)
    expect(launch).to_be_enabled()
    screenshot(page, "4-launch")
    launch.click()
    expect(page.get_by_text("Launched run")).to_be_visible()
    shown(page, "View").click()
    page.wait_for_url("**/runs/*-*")
    expect(shown(page, "Success").or_(shown(page, "Failure"))).to_be_visible(timeout=RUNS_MS)
    for text in ("Success", f"partition: {DAY}", f"{len(ASSETS)} assets", "Errored (0)"):
        expect(page.locator("body")).to_contain_text(text)
    screenshot(page, "5-run")
    return page.url.rsplit("/", 1)[1].partition("?")[0]


def everything_from_the_graph_is_a_backfill(page: Page) -> None:
    """A day of all assets is also its week and month and the days that look back at it: Dagster makes runs of these."""
    page.goto("/asset-groups")
    dialog = choose_days(page, DAY, ALL)
    dialog.get_by_role("button", name="Launch backfill", exact=True).click()
    expect(dialog).to_be_hidden()
    deadline = time.monotonic() + RUNS_MS / 1000
    for asset in ("week_distillations", "month_distillations"):
        page.goto(f"/assets/{asset}?view=partitions")
        while not page.get_by_text("Materialized (1)").filter(visible=True).count():
            assert time.monotonic() < deadline, (
                f"{asset} of the examples is missing; those without a session always are"
            )
            page.wait_for_timeout(5000)
            page.reload()
            expect(page.get_by_text(re.compile(r"Missing \(\d+\)"))).to_be_visible()
    screenshot(page, "5-month-partitions")


def the_pool_was_left_alone(page: Page) -> None:
    """It is made by hand, and not with everything else."""
    deadline = time.monotonic() + RUNS_MS / 1000
    page.goto("/assets/pool_reflections")
    while not page.get_by_text("Nothing was added").filter(visible=True).count():
        assert time.monotonic() < deadline, "pool_reflections does not say that it was left alone"
        page.wait_for_timeout(5000)  # its run of the backfill may be the last one
        page.reload()
        page.wait_for_load_state("networkidle")


def numbers_are_plotted(page: Page) -> None:
    """Where README says; the example days are too old for the plots by day."""
    page.goto("/assets/observations")
    for name in ("Plots", "Events"):
        page.get_by_text(name, exact=True).filter(visible=True).last.click()  # a tab of the page is called Events too
    for name in (ROW_COUNT, "high", "compression_ratio"):
        expect(shown(page, name)).to_be_visible()
    screenshot(page, "9-plots")


def observations_tell_of_themselves(page: Page, run: str) -> dict[str, float]:
    """The asset's description and schema, the day's numbers and preview. The numbers are returned."""
    page.goto("/assets/observations")
    for text in ("One row is", "Column name", "observed_at", "TIMESTAMPTZ", "evidence"):
        expect(page.get_by_text(text).filter(visible=True).first).to_be_visible()
    screenshot(page, "6-observations")
    page.goto(f"/assets/observations?view=partitions&partition={DAY}")
    expect(shown(page, run[:8])).to_be_visible()
    numbers = numbers_of_table(page)
    assert numbers[ROW_COUNT] == numbers["high"] + numbers["medium"] + numbers["low"] > 0
    screenshot(page, "7-observations-of-the-day")
    shown(page, "[Show Markdown]").click()
    facts = page.get_by_role("dialog").locator("tr")
    expect(facts.filter(has_text="uv add").first).to_be_visible()
    assert all(re.match(r"high|medium|low", text.strip()) for text in facts.all_inner_texts()[1:])
    screenshot(page, "8-preview")
    return numbers


def check_passed(page: Page, check: str, run: str) -> dict[str, float]:
    """The check passed for the day in this run; its numbers."""
    page.goto("/assets/observations?view=checks")
    shown(page, check).click()
    expect(page.get_by_role("tab", name="Execution history")).to_be_visible()
    page.get_by_role("tab", name="Partitions").last.click()
    page.get_by_placeholder("Filter by partition").fill(DAY)
    expect(page.get_by_text("1 Partitions Selected")).to_be_visible()
    page.get_by_text(DAY, exact=True).filter(visible=True).last.click()
    for text in (run[:8], "Passed"):
        expect(shown(page, text)).to_be_visible()
    screenshot(page, f"9-{check}")
    return numbers_of_table(page)


def shown(page: Page, text: str) -> Locator:
    """The first visible element with exactly this text; the UI keeps hidden copies of some."""
    return page.get_by_text(text, exact=True).filter(visible=True).first


def rows(page: Page, text: str) -> Locator:
    """The rows of a list that hold the text."""
    return page.locator("[class*=VirtualizedTable_row]").filter(has_text=text)


def numbers_of_table(page: Page) -> dict[str, float]:
    """What is a number in the table of metadata."""
    expect(page.locator("tr").last).to_be_visible()
    cells = page.locator("tr").evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.innerText))")
    return {key: float(value) for key, value, *_ in cells if re.fullmatch(r"[\d.]+", value)}


def screenshot(page: Page, name: str) -> None:
    page.wait_for_timeout(1000)  # for animations
    page.screenshot(path=SHOTS / f"{name}.png")
