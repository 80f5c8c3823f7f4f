"""Many VMs at once: chosen in the list, and what became of each."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.axe import faults
from tests.support.served.browser import settled
from vmtune import lab


def order(page: Page, action: str) -> Locator:
    """Ask for something to be done with what is chosen."""
    page.get_by_label("Chosen VMs").get_by_role("button", name=action, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button").first).to_be_visible()
    return dialog


def test_chosen_vms_are_labelled_assigned_verified_and_migrated(it: Live, page: Page) -> None:
    it.profile("bulk", downtime_limit_ms=430)
    with it.vm() as vm, it.vm() as other:
        both = (vm.name, other.name)
        page.goto("/vms")
        for name in both:
            page.get_by_label(f"Choose {name}").check()
        dialog = order(page, "Label")
        dialog.get_by_label("Labels").fill("tier")
        go = dialog.get_by_role("button", name="Change labels")
        expect(go).to_be_disabled()
        dialog.get_by_label("Labels").fill("tier=bulk")
        assert not faults(page)
        go.click()
        expect(dialog).to_contain_text("2 changed")
        assert not faults(page)
        dialog.get_by_role("button", name="Close").last.click()
        expect(page.get_by_label("Chosen VMs")).to_have_count(0)

        page.get_by_label("Only VMs with this label").fill("tier=bulk")
        expect(page).to_have_url(re.compile("tier"))  # what is chosen before is forgotten then
        expect(page.get_by_role("grid", name="VMs").get_by_role("row")).to_have_count(3)
        page.get_by_label("Choose all shown").check()
        dialog = order(page, "Assign")
        dialog.get_by_label("Profile").select_option("bulk")
        dialog.get_by_role("button", name="Assign", exact=True).click()
        expect(dialog).to_contain_text("2 assigned")
        dialog.get_by_role("button", name="Close").last.click()
        for uuid in (vm.uuid, other.uuid):
            assert it.client.get(f"/vms/{uuid}/explain")["winner"]["profile"] == "bulk"

        page.get_by_label(f"Choose {other.name}").check()
        page.get_by_role("button", name="Choose all 2 that match").click()
        expect(page.get_by_label("Chosen VMs")).to_contain_text("All 2 VMs that match")
        dialog = order(page, "Re-apply")
        dialog.get_by_label("VMs changed at most").fill("1")
        expect(dialog).to_contain_text("1 of 2 VMs will be left out")
        dialog.get_by_role("button", name="Re-apply").click()
        expect(dialog).to_contain_text("The limit of 1 VM was reached; 1 VM left as they were")
        dialog.get_by_role("button", name="Close").last.click()

        page.get_by_label("Choose all shown").check()
        dialog = order(page, "Verify")
        dialog.get_by_role("button", name="Verify").click()
        expect(dialog.get_by_role("grid", name="Results").get_by_role("row")).to_have_count(3)
        dialog.get_by_role("button", name="Close").last.click()

        page.get_by_label(f"Choose {other.name}").check()
        dialog = order(page, "Migrate")
        dialog.get_by_label("Destination").select_option("b")
        dialog.get_by_role("button", name="Migrate").click()
        expect(dialog).to_contain_text("1 started")
        dialog.get_by_role("link", name="to b").click()
        expect(page).to_have_url(re.compile("/migrations/"))
        begun = next(it.client.items("/migrations", {"vm": other.uuid}))
        assert it.ended(begun)["state"] == "completed"
    for each in it.client.items("/assignments"):
        if each["key"] in (vm.uuid, other.uuid):
            it.client.delete(f"/assignments/{each['id']}")


def test_labels_of_one_vm_are_changed_on_its_page(it: Live, vm: lab.LabVm, page: Page) -> None:
    it.client.put(f"/vms/{vm.uuid}/labels", {"labels": {"old": "1", "zone": "a"}})
    page.goto(f"/vms/{vm.uuid}")
    settled(page)
    page.get_by_role("button", name="Edit labels").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Remove old").click()
    dialog.get_by_label("Add or change").fill("zone=b tier=db")
    assert not faults(page)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("tier=db", exact=True)).to_be_visible()
    labels = it.client.get(f"/vms/{vm.uuid}")["labels"]
    assert labels == {"zone": "b", "tier": "db"}
