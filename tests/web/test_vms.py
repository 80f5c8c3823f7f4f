"""A VM's settings: planned, applied, verified and reverted in a browser."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import settled
from vmtune import lab


def choose(page: Page, opener: str, profile: str) -> Locator:
    """Open a dialog of the VM's page and choose a profile in it."""
    page.get_by_role("button", name=opener, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("option", name=profile, exact=True)).to_be_attached()
    dialog.get_by_label("Profile", exact=True).select_option(profile)
    return dialog


def test_planned_applied_verified_and_reverted(it: Live, vm: lab.LabVm, page: Page) -> None:
    it.profile("quick", downtime_limit_ms=450, announce_rounds=7)
    before = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
    page.goto("/vms")
    page.get_by_role("link", name=vm.name).click()
    dialog = choose(page, "Plan and apply", "quick")
    limit = dialog.get_by_role("row", name=re.compile("^downtime_limit_ms "))
    expect(limit).to_contain_text("450 ms")
    expect(limit).to_contain_text("300 ms")
    now = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
    assert now == before, "a plan changes nothing"

    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text(f"quick was applied to {vm.name}").first).to_be_visible()
    expect(dialog).to_have_count(0)
    applied = page.get_by_role("grid", name="Applications").get_by_role("row").nth(1)
    expect(applied).to_contain_text("quick r1")
    expect(applied).to_contain_text("applied")

    given = {"target": "vm", "key": vm.uuid, "profile": "quick"}
    given = it.client.post("/assignments", given)
    verify = page.get_by_role("button", name="Verify")
    expect(verify).to_be_enabled()
    verify.click()
    rows = page.get_by_role("grid", name="Settings")
    expect(rows.get_by_role("row", name=re.compile("^downtime_limit_ms "))).to_contain_text(
        "effective"
    )

    applied.get_by_role("button", name="Revert").click()
    expect(page.get_by_text("quick was reverted", exact=False).first).to_be_visible()
    expect(applied).to_contain_text("reverted")
    # Whatever it is held against now, another application or the assignment: QEMU's is back.
    expect(rows.get_by_role("row", name=re.compile("^downtime_limit_ms "))).to_contain_text(
        "300 ms"
    )
    assert it.client.get(f"/vms/{vm.uuid}/effective")["readings"] == before
    it.client.delete(f"/assignments/{given['id']}")


def test_a_blocker_is_told_and_has_to_be_overridden(it: Live, vm: lab.LabVm, page: Page) -> None:
    it.profile("ringless", reaper_policy="predict", multifd=True)
    before = list(it.client.items("/migrations", {"vm": vm.uuid}))
    page.goto(f"/vms/{vm.uuid}")
    dialog = choose(page, "Migrate", "ringless")
    dialog.get_by_label("Destination").select_option("b")
    expect(dialog).to_contain_text("the reaper needs KVM with a dirty ring")
    expect(dialog).to_contain_text("Set dirty_ring_size_entries to 65536 and restart the VM")
    go = dialog.get_by_role("button", name="Migrate", exact=True)
    expect(go).to_be_disabled()
    dialog.get_by_label("Override reaper_needs_ring").check()
    expect(go).to_be_enabled()
    dialog.get_by_role("button", name="Cancel").click()
    settled(page)
    assert list(it.client.items("/migrations", {"vm": vm.uuid})) == before
