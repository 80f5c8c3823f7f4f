"""The history of a metric: drawn, its changes triaged, and what the newest runs hint at."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.benchmarks.measured import PLACE, noisy, put
from tests.support.hosts.live import Live
from tests.support.served.browser import settled
from vmtune.storage import Store

STEPPED, HINTED = "test/stepped", "test/hinted"


@pytest.fixture(scope="module")
def measured(it: Live) -> Live:
    """Runs of two scenarios: one that became slower with a newer QEMU, and one whose last runs
    lie apart."""
    steady = noisy(1000, 50, 5)
    with Store.open(f"sqlite:///{it.service.folder}/vmtune.db") as store:
        put(store, "old", noisy(1000, 20, 1), scenario=STEPPED)
        newer = {**PLACE, "qemu": {"version": "10.1.0"}}
        put(store, "new", noisy(1500, 20, 2), scenario=STEPPED, environment=newer,
            fingerprint="there", after=60)  # fmt: skip
        last = [1.2 * value for value in steady[:3]]
        put(store, "hinted", [*steady, *last], scenario=HINTED)
    it.client.post("/changes/look", {})
    return it


def test_a_change_is_drawn_told_with_its_cause_and_triaged(measured: Live, page: Page) -> None:
    page.goto("/bench/history")
    open_changes = page.get_by_role("list").filter(has_text=STEPPED)
    expect(open_changes).to_contain_text(re.compile(r"\+\d+\s%.*: worse"))
    page.get_by_label("Scenario", exact=True).select_option(STEPPED)
    settled(page)
    chart = page.get_by_role("img", name=re.compile("^total_time_ms of 40 runs, 1 change:"))
    expect(chart).to_be_visible(timeout=30_000)
    expect(chart.locator("canvas, svg")).to_have_count(1, timeout=30_000)
    table = page.get_by_role("grid", name=re.compile("^Changes: "))
    row = table.get_by_role("row").nth(1)
    expect(row).to_contain_text("worse")
    expect(row).to_contain_text("qemu.version: 10.0.2 before, 10.1.0 since")
    expect(row).to_contain_text("not triaged")

    row.get_by_role("button", name=re.compile("^Triage the change of run")).click()
    dialog = page.get_by_role("dialog", name="Triage this change")
    dialog.get_by_label("To fix").check()
    dialog.get_by_label("Note").fill("bug 7")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(row).to_contain_text("to fix: bug 7")
    kept = [each for each in measured.client.items("/changes") if each["scenario"] == STEPPED]
    assert [(each["triage"], each["note"]) for each in kept] == [("to_fix", "bug 7")]


@pytest.mark.usefixtures("measured")
def test_what_the_newest_runs_hint_at_is_provisional(page: Page) -> None:
    page.goto(f"/bench/history?scenario={HINTED}")
    settled(page)
    sign = page.get_by_role("heading", name=re.compile("Clear early sign: the last 3 runs"))
    expect(sign).to_contain_text("provisional")
    expect(sign).to_contain_text("of histories without a change")
    expect(page.get_by_text("No change in 53 runs.")).to_be_visible()
