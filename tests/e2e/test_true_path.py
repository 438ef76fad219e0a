"""The path of the product in a real Chromium: New run, Queue, progress, the verdict on Compare, a PNG and a CSV."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NEW, OLD, Machine, Up

pytestmark = [pytest.mark.builds, pytest.mark.browser]
CASE = "cpu-fusion/swish[n=65536]"


def choose(page: Page, key: str, text: str) -> None:
    """Types into a multiselect and takes what it offers."""
    box = page.locator(f".st-key-{key} input")
    box.click()
    box.fill(text)
    box.press("Enter")
    box.press("Escape")


def test_from_a_click_to_a_verdict(page: Page, up: Up, machine: Machine, real_builds: tuple[str, str]) -> None:
    page.goto(f"{up.address}/new-run")
    expect(page.get_by_text("What should be measured?")).to_be_visible()
    choose(page, "queue-suites", "cpu-fusion")
    page.locator(".st-key-queue-cases input").fill("swish[n=65536]")
    page.locator(".st-key-queue-cases input").press("Enter")
    for build in (OLD, NEW):
        choose(page, "queue-builds", build)
    expect(page.get_by_text(f"Baseline: {OLD}. Compared with it: {NEW}.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"1 case × 2 builds on"))).to_be_visible()
    page.locator(".st-key-queue-submit button").click()

    page.wait_for_url(re.compile(r"/runs\?run=\d+"))
    expect(page.locator(".st-key-run-progress")).to_be_visible()
    expect(page.locator(".st-key-run-progress")).to_contain_text(re.compile(r"Round \d+ of 8"), timeout=120_000)
    expect(page.get_by_text(re.compile(r"Finished in .* after 8 rounds"))).to_be_visible(timeout=300_000)
    run = int(page.url.split("run=")[1].split("&")[0])
    assert machine.json("runs", str(run))["state"] == "finished"

    baseline, contender = real_builds
    page.goto(f"{up.address}/compare?{urlencode({'baseline': baseline, 'contender': contender})}")
    expect(page.locator(".st-key-compare-chart svg, .st-key-sheet-compare svg").first).to_be_visible()
    sentence = page.locator(".fp-answer h1")
    expect(sentence).to_have_text(
        re.compile(r"(Slower|Faster|The same|Nothing changed|Unsure).* \d+ (cases|comparisons)")
    )
    assert f"baseline={baseline.replace('+', '%2B')}" in page.url or f"baseline={baseline}" in page.url

    picture = download(page, "PNG")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
    assert width > 1000 and height > 200
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode("utf-8-sig"))))
    mine = [r for r in rows if r["case"] == CASE and r["variant"] == "nnc" and r["metric"] == "time"]
    assert len(mine) == 1
    assert mine[0]["outcome"] == "unsupported" and mine[0]["ratio"] == ""
    eager = [r for r in rows if r["case"] == CASE and r["variant"] == "eager" and r["metric"] == "time"]
    assert float(eager[0]["ratio"]) > 0
    assert eager[0]["verdict"] in ("slower", "faster", "same", "unsure")


def download(page: Page, label: str) -> bytes:
    """Chooses an export format and downloads it."""
    box = page.locator(".st-key-export-format input, .st-key-export-format [role=combobox]").first
    box.scroll_into_view_if_needed()
    page.wait_for_timeout(500)  # a list that opens while the page still scrolls closes again
    box.click(delay=80)
    page.get_by_role("option", name=label, exact=True).click(delay=80)
    page.wait_for_timeout(1000)
    with page.expect_download(timeout=60_000) as waiting:
        page.locator(".st-key-export-download button").click()
    return waiting.value.path().read_bytes()


def test_a_double_click_makes_one_request(page: Page, up: Up, machine: Machine, real_builds: tuple[str, str]) -> None:
    before = {run["request"] for run in machine.json("runs")}
    page.goto(
        f"{up.address}/new-run?"
        + urlencode({"suite": "parametrizations", "case": "four_forwards[size=64]", "build": [OLD, NEW]}, doseq=True)
    )
    expect(page.get_by_text(re.compile(r"1 case × 2 builds on"))).to_be_visible()
    page.locator(".st-key-queue-submit button").dblclick()
    page.wait_for_url(re.compile(r"/runs\?run=\d+"))
    after = {run["request"] for run in machine.json("runs")}
    assert len(after - before) == 1
    page.locator(".st-key-run-cancel button").click()
    expect(page.locator(".fp-answer h1")).to_contain_text("Cancelled", timeout=30_000)
    run = int(page.url.split("run=")[1].split("&")[0])
    assert machine.json("runs", str(run))["state"] == "cancelled"


@pytest.mark.parametrize("path", ["/", "/new-run", "/runs", "/compare", "/builds", "/nodes"])
def test_every_page_opens_by_its_address(page: Page, up: Up, path: str) -> None:
    page.goto(up.address + path)
    expect(page.locator(".fp-answer h1").first).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(800)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def test_a_deep_link_to_nothing_is_a_sentence(page: Page, up: Up) -> None:
    page.goto(f"{up.address}/runs?run=999999999999999999999")
    expect(page.get_by_text("no number of a run").or_(page.get_by_text("There is no run"))).to_be_visible()
    page.goto(f"{up.address}/compare?baseline=<b>x</b>&contender=:material/bolt:")
    expect(page.get_by_text("<b>x</b>")).to_be_visible()
