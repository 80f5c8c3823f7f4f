"""Campaigns: planned, started and stopped in a browser; their verdicts read."""

import re
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import WIDE, Watch, settled
from vmtune.bench.report.words import distinct_texts
from vmtune.stats.model import Scale
from vmtune.units import Unit


def step_on(page: Page) -> None:
    page.get_by_role("button", name="Next", exact=True).click()


@pytest.mark.usefixtures("campaign")  # one is run at a time
def test_planned_in_the_wizard_started_and_cancelled(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"422"}
    page.goto("/bench/campaigns")
    page.get_by_role("link", name="New campaign").first.click()
    # The list searches by a name, too.
    expect(page.get_by_role("heading", name="New campaign")).to_be_visible()
    page.get_by_label("Name", exact=False).first.fill("by-hand")
    page.get_by_label("Scenario").select_option("plain/1gbs")
    page.get_by_label("Small VM").check()
    step_on(page)
    expect(page.get_by_text("All arms are the same so far")).to_be_visible()
    page.get_by_role("button", name="Set a tunable").last.click()
    page.get_by_label("Tunable 1 of tuned", exact=True).select_option("multifd")
    page.get_by_label("Value 1 of tuned", exact=True).fill("maybe")
    # What is wrong stops at the step where it can be corrected.
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    page.get_by_label("Value 1 of tuned", exact=True).fill("on")
    expect(page.get_by_text("All arms are the same so far")).to_have_count(0)
    step_on(page)
    forecast = page.get_by_role("region", name="Forecast")
    expect(forecast).to_contain_text(re.compile(r"From .*\s%, with 80\s% power"))
    page.get_by_label("Blocks", exact=True).fill("2")
    expect(forecast).to_contain_text("too few blocks for a verdict")
    expect(forecast).to_contain_text(re.compile("About .*"))
    step_on(page)
    assert not any(each["name"] == "by-hand" for each in it.client.items("/campaigns"))

    page.get_by_role("button", name="Start campaign").click()
    expect(page).to_have_url(re.compile("/bench/campaigns/[-0-9a-f]{36}$"))
    expect(page.get_by_role("progressbar", name=re.compile("of 5 runs$"))).to_be_visible()
    expect(page.get_by_label(re.compile("^(warm-up|stock|tuned), .*: running$"))).to_be_visible()
    page.get_by_role("button", name="Cancel campaign").click()
    dialog = page.get_by_role("dialog", name="Cancel this campaign?")
    dialog.get_by_role("button", name="Cancel campaign").click()
    expect(page.get_by_role("button", name="Cancel campaign")).to_have_count(0)
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()


def test_its_verdict_is_read_and_its_runs_are_found(it: Live, campaign: str, page: Page) -> None:
    report = it.client.get("/comparisons", {"campaign": campaign})
    comparisons = report["cells"][0]["comparisons"]
    told = next(each for each in comparisons if each["criterion"]["primary"])
    assert told["verdict"] == "better", "a link five times as wide makes no difference?"
    (estimate,) = distinct_texts((told["effect"]["estimate"],), Scale.RATIO, Unit.MS)
    page.goto("/bench/campaigns")
    page.get_by_role("link", name="tiny", exact=True).click()
    settled(page)
    verdicts = page.get_by_role("grid", name="Verdicts")
    row = verdicts.get_by_role("row").nth(1)
    expect(row).to_contain_text("wide compared to narrow")
    expect(row).to_contain_text("better")
    expect(row).to_contain_text(estimate)
    # In a narrow column it was "bet" above "ter".
    verdict = row.get_by_text("better", exact=True)
    assert verdict.evaluate("(each) => getComputedStyle(each).overflowWrap") == "break-word"
    runs = [run for run in it.client.items("/runs", {"campaign": campaign}) if run["slot"]["block"]]
    assert len(runs) == 12
    for state, count in Counter(run["state"] for run in runs).items():
        made = page.get_by_label(re.compile(f"^(narrow|wide), block [1-6]: {state}$"))
        expect(made).to_have_count(count)

    page.get_by_role("link", name="Compare all metrics").click()
    settled(page)
    metrics = page.get_by_role("grid", name="wide compared to narrow")
    total = metrics.get_by_role("row", name=re.compile("Total time"))
    expect(total).to_contain_text("(primary)")
    expect(total).to_contain_text(estimate)
    expect(total).to_contain_text("better")

    # The report can be read whole on a window of 1,000 pixels: nothing of it is cut off.
    report_at = page.get_by_role("link", name="Report").first.get_attribute("href")
    page.set_viewport_size({"width": 1000, "height": 900})
    page.goto(str(report_at))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    verdicts = page.locator(".wide").first
    assert verdicts.evaluate("(each) => each.scrollWidth <= each.clientWidth + 1")
    quartiles = verdicts.locator("td.n .dim").first  # the longest, on some runs too long for a line
    assert quartiles.evaluate("(each) => getComputedStyle(each).whiteSpace") == "normal"

    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    page.goto(f"/bench/runs?campaign={campaign}")
    settled(page)
    page.get_by_role("grid", name="Runs").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/bench/runs/[-0-9a-f]{36}$"))
    settled(page)
    expect(page.get_by_text("completed", exact=True).first).to_be_visible()
