"""An operator's jobs, done in no more clicks than they may take."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Locator, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled
from vmtune import lab


class Hand:
    """What a hand does: each click counts, and each field that it goes to."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, place: Locator) -> None:
        """Click it."""
        self.clicks += 1
        place.click()

    def type(self, field: Locator, text: str) -> None:
        """Go to a field and type."""
        self.clicks += 1
        field.fill(text)


@contextmanager
def within(most: int) -> Iterator[Hand]:
    """A hand that is to be done within so many clicks."""
    hand = Hand()
    yield hand
    assert hand.clicks <= most, f"{hand.clicks} clicks, {most} are allowed"


def navigate(page: Page, where: str) -> Locator:
    """A link of the navigation."""
    return page.get_by_role("navigation", name="Pages").get_by_role("link", name=where)


def drift(it: Live, vm: lab.LabVm) -> None:
    """As somebody who changes a setting beside vmtune, and a look that notices it."""
    limit = {"execute": "migrate-set-parameters", "arguments": {"downtime-limit": 123}}
    lab.virsh(it.host("a").uri, "qemu-monitor-command", vm.name, json.dumps(limit))
    assert not it.client.post(f"/vms/{vm.uuid}/verify")["clean"]


def test_why_a_vm_is_not_tuned_takes_two_clicks(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"404", "409"}  # the page stays open when the VM is shut off, and gone
    with it.vm() as vm:
        page.goto("/")
        settled(page)
        with within(2) as hand:
            hand.click(navigate(page, "VMs"))
            hand.click(page.get_by_role("link", name=vm.name))
            expect(page.get_by_text("Not tuned: no profile is assigned")).to_be_visible()


def test_to_reapply_to_all_that_drift_takes_three_clicks(it: Live, page: Page) -> None:
    it.profile("held", downtime_limit_ms=410)
    with it.vm() as one, it.vm() as two:
        for vm in (one, two):
            it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "held"})
            drift(it, vm)
        page.goto("/")
        settled(page)
        with within(3) as hand:
            hand.click(navigate(page, "VMs"))
            hand.click(page.get_by_role("button", name=re.compile(r"^Re-apply to \d+ drifted")))
            dialog = page.get_by_role("dialog")
            hand.click(dialog.get_by_role("button", name="Re-apply"))
            for vm in (one, two):
                row = dialog.get_by_role("row", name=re.compile(f"^{vm.name}"))
                expect(row).to_contain_text("as wanted")
                expect(row).to_contain_text("held r1")
        dialog.get_by_role("button", name="Close").last.click()
        for vm in (one, two):
            assert it.client.post(f"/vms/{vm.uuid}/verify")["clean"]


def test_a_drifted_vm_is_mended_on_its_page(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"404", "409"}  # the page stays open when the VM is shut off, and gone
    it.profile("kept", downtime_limit_ms=420)
    with it.vm() as vm:
        it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "kept"})
        drift(it, vm)
        page.goto(f"/vms/{vm.uuid}")
        expect(page.get_by_text("Drifted from kept r1: downtime_limit_ms")).to_be_visible()
        with within(2) as hand:
            hand.click(page.get_by_role("button", name="Re-apply"))
            dialog = page.get_by_role("dialog")
            expect(dialog.get_by_role("row", name=re.compile("^downtime"))).to_contain_text(
                "123 ms"
            )
            hand.click(dialog.get_by_role("button", name="Re-apply"))
            expect(page.get_by_text(f"kept was applied to {vm.name}").first).to_be_visible()
        assert it.client.post(f"/vms/{vm.uuid}/verify")["clean"]


def test_a_profile_from_a_template_is_applied_in_five_clicks(
    it: Live, page: Page, watch: Watch
) -> None:
    watch.refusals |= {"404", "409"}  # the page stays open when the VM is shut off, and gone
    with it.vm() as vm:
        page.goto("/")
        settled(page)
        with within(5) as hand:
            hand.click(navigate(page, "Profiles"))
            hand.click(page.get_by_role("link", name="Create profile").first)
            hand.click(page.get_by_role("button", name="Begin with 10 Gbit LAN"))
            hand.type(page.get_by_role("combobox", name="VM", exact=True), vm.name)
            expect(page.get_by_role("grid", name="Plan")).to_contain_text("multifd")
            hand.click(page.get_by_role("button", name=f"Create and apply to {vm.name}"))
            expect(page.get_by_text(f"lan-10g was applied to {vm.name}").first).to_be_visible()
        expect(page.get_by_role("heading", name=vm.name, level=1)).to_be_visible()
        assert it.client.get("/profiles/lan-10g")["values"]["multifd_channels"] == 4
        newest = next(it.client.items("/applications", {"vm": vm.uuid}))
        assert (newest["profile"], newest["state"]) == ("lan-10g", "applied")
