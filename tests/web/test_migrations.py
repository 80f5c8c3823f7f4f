"""Migrations: begun, followed and aborted in a browser."""

import re

from playwright.sync_api import Page, expect

from tests.support.browser import Watch
from tests.support.live import Live
from tests.web.test_vms import choose


def begin(it: Live, page: Page, vm: str, profile: str) -> str:
    """Order a migration to host b on the VM's page; its id."""
    page.goto(f"/vms/{vm}")
    dialog = choose(page, "Migrate", profile)
    dialog.get_by_label("Destination").select_option("b")
    dialog.get_by_role("button", name="Migrate", exact=True).click()
    expect(page).to_have_url(re.compile("/migrations/[-0-9a-f]{36}$"))
    return page.url.rpartition("/")[2]


def test_followed_live_to_its_end(it: Live, page: Page) -> None:
    # 128 MiB at 24 MiB/s, of which the guest has written 32: some seconds to look at.
    it.profile("watched", max_bandwidth_bytes_per_s="24MiB/s", downtime_limit_ms=2000)
    with it.vm() as vm:
        id = begin(it, page, vm.uuid, "watched")
        bar = page.get_by_role("progressbar")
        expect(
            page.get_by_text(re.compile(r"iteration \d+ · .* left · sends .*/s"))
        ).to_be_visible()
        expect(bar).not_to_have_attribute("aria-valuenow", "0")
        seen = int(bar.get_attribute("aria-valuenow") or 0)
        assert seen < 100, "it is shown while it runs"
        expect(bar).not_to_have_attribute("aria-valuenow", str(seen))
        # Without a reload: what comes at the end is brought by the event stream.
        expect(page.get_by_text("completed", exact=True)).to_be_visible()
        expect(bar).to_have_count(0)
        rows = page.get_by_role("grid", name="What QEMU ran with")
        bandwidth = rows.get_by_role("row", name=re.compile("^max_bandwidth_bytes_per_s "))
        expect(bandwidth).to_contain_text("effective")
        expect(page.get_by_role("img", name="Throughput and dirty rate over time")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download samples").click()
        assert download.value.suggested_filename == f"migration-{id}.json"
        record = it.client.get(f"/migrations/{id}")
        assert record["state"] == "completed", record["failure"]
        assert it.states(vm) == {"b": "running"}


def test_aborted_after_it_was_confirmed(it: Live, page: Page, watch: Watch) -> None:
    it.profile("slow", max_bandwidth_bytes_per_s="4MiB/s")
    with it.vm() as vm:
        id = begin(it, page, vm.uuid, "slow")
        expect(page.get_by_text(re.compile("iteration "))).to_be_visible()
        page.get_by_role("button", name="Abort", exact=True).click()
        dialog = page.get_by_role("dialog", name="Abort this migration?")
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)
        assert it.client.get(f"/migrations/{id}")["state"] == "active"

        # Meanwhile it is shown where one looks first, and another cannot be begun.
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("progressbar", name=vm.name)).to_be_visible()
        page.goto(f"/vms/{vm.uuid}")
        second = choose(page, "Migrate", "slow")
        second.get_by_label("Destination").select_option("b")
        expect(second).to_contain_text("a migration of this VM is active")
        expect(second.get_by_role("button", name="Migrate", exact=True)).to_be_disabled()

        page.goto(f"/migrations/{id}")
        page.get_by_role("button", name="Abort", exact=True).click()
        dialog.get_by_role("button", name="Abort", exact=True).click()
        expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Abort", exact=True)).to_have_count(0)
        assert it.states(vm) == {"a": "running"}


def test_an_abort_that_comes_too_late_is_told(it: Live, page: Page, watch: Watch) -> None:
    it.profile("slower", max_bandwidth_bytes_per_s="4MiB/s")
    watch.refusals |= {"409"}
    with it.vm() as vm:
        id = begin(it, page, vm.uuid, "slower")
        expect(page.get_by_text(re.compile("iteration "))).to_be_visible()
        page.get_by_role("button", name="Abort", exact=True).click()
        it.client.delete(f"/migrations/{id}")
        it.ended({"id": id})
        page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True).click()
        expect(page.get_by_text("It was not aborted").first).to_be_visible()
