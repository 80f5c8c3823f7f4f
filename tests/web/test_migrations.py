"""Migrations: begun, followed and aborted in a browser."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.hosts.live import Live, wait_for
from tests.support.served.browser import Watch, settled
from tests.web.test_clicks import navigate, within
from tests.web.test_vms import choose
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload


def begin(it: Live, page: Page, vm: str, profile: str) -> str:
    """Order a migration to host b on the VM's page; its id."""
    page.goto(f"/vms/{vm}")
    dialog = choose(page, "Migrate", profile)
    dialog.get_by_label("Destination").select_option("b")
    dialog.get_by_role("button", name="Migrate", exact=True).click()
    expect(page).to_have_url(re.compile("/migrations/[-0-9a-f]{36}$"))
    return page.url.rpartition("/")[2]


def test_followed_live_to_its_end(it: Live, page: Page) -> None:
    # So slow that it is seen to move, however slow the browser is; and then let go.
    it.profile("watched", max_bandwidth_bytes_per_s="2MiB/s", downtime_limit_ms=2000)
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
        faster = {"max_bandwidth_bytes_per_s": "1GiB/s"}
        it.client.patch(f"/migrations/{id}", {"values": faster})
        # Without a reload: what comes at the end is brought by the event stream.
        expect(page.get_by_text("completed", exact=True)).to_be_visible()
        expect(bar).to_have_count(0)
        rows = page.get_by_role("grid", name="Values in QEMU")
        bandwidth = rows.get_by_role("row", name=re.compile("^max_bandwidth_bytes_per_s "))
        expect(bandwidth).to_contain_text("effective")
        expect(page.get_by_role("img", name="Throughput and dirty rate over time")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download samples").click()
        assert download.value.suggested_filename == f"migration-{id}.json"
        record = it.client.get(f"/migrations/{id}")
        assert record["state"] == "completed", record["failure"]
        assert it.states(vm) == {"b": "running"}


def test_aborted_after_it_was_confirmed(it: Live, vm: lab.LabVm, page: Page) -> None:
    it.profile("slow", max_bandwidth_bytes_per_s="4MiB/s")
    id = begin(it, page, vm.uuid, "slow")
    expect(page.get_by_text(re.compile("iteration "))).to_be_visible()
    page.get_by_role("button", name="Abort", exact=True).click()
    dialog = page.get_by_role("dialog", name="Abort this migration?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert it.client.get(f"/migrations/{id}")["state"] == "active"

    # Meanwhile it is shown where one looks first, and another cannot be begun.
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("progressbar", name=f"{vm.name}: a to b")).to_be_visible()
    page.get_by_role("link", name=f"{vm.name}: a to b").click()
    expect(page).to_have_url(re.compile(f"/migrations/{id}$"))
    page.goto(f"/vms/{vm.uuid}")
    page.get_by_role("link", name="Running migration").click()
    expect(page).to_have_url(re.compile(f"/migrations/{id}$"))
    page.get_by_role("button", name="Abort", exact=True).click()
    dialog.get_by_role("button", name="Abort", exact=True).click()
    expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Abort", exact=True)).to_have_count(0)
    assert it.states(vm) == {"a": "running"}


def test_what_comes_too_late_is_told(it: Live, vm: lab.LabVm, page: Page, watch: Watch) -> None:
    it.profile("slower", max_bandwidth_bytes_per_s="4MiB/s")
    watch.refusals |= {"409"}
    page.goto(f"/vms/{vm.uuid}")
    dialog = choose(page, "Migrate", "slower")
    dialog.get_by_label("Destination").select_option("b")
    go = dialog.get_by_role("button", name="Migrate", exact=True)
    expect(go).to_be_enabled()
    id = it.migrate(vm, "b", profile="slower")["id"]
    go.click(force=True)  # it may have heard of the other one just now
    expect(dialog).to_contain_text(re.compile("migration (.* )?of this VM is (in progress|active)"))

    page.goto(f"/migrations/{id}")
    expect(page.get_by_text(re.compile("iteration "))).to_be_visible()
    page.get_by_role("button", name="Abort", exact=True).click()
    it.client.delete(f"/migrations/{id}")
    it.ended({"id": id})
    page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True).click()
    expect(page.get_by_text("The abort failed").first).to_be_visible()


@pytest.fixture
def theirs(it: Live) -> Iterator[lab.LabVm]:
    """A VM with a profile of which those who migrate it know nothing."""
    # It takes some seconds, so that its values can be read back on a busy machine, and ends.
    rests = Workload(region_bytes=8 << 20, idle_ms=10_000)
    with it.vm(memory_bytes=64 << 20, workload=rests) as vm:
        it.profile("theirs", multifd=True, multifd_channels=3, announce_rounds=8)
        given = {"target": "vm", "key": vm.uuid, "profile": "theirs"}
        it.client.post("/assignments", given)
        yield vm


@contextmanager
def virsh_migrate(it: Live, vm: lab.LabVm) -> Iterator[None]:
    """What an operator does who has not heard of vmtune."""
    a, b = it.status.hosts
    options = ("--live", "--p2p", "--persistent", "--undefinesource", "--bandwidth", "2")
    command = ("virsh", "-c", a.uri, "migrate", *options, vm.name, b.peer_uri)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.wait(60) == 0
        finally:
            process.terminate()


def announce(it: Live, vm: lab.LabVm) -> None:
    """What libvirt's hook does on the host where the VM is about to arrive."""
    xml = lab.virsh(it.host("a").uri, "dumpxml", vm.name)
    service = it.client.connection(10)
    service.request("POST", "/api/v1/hooks/qemu", xml, {"Content-Type": "application/xml"})
    assert service.getresponse().status == 204
    service.close()


def test_what_others_migrate_is_announced_and_followed(
    it: Live, theirs: lab.LabVm, page: Page
) -> None:
    vm = theirs
    with page.expect_response("**/api/v1/events*"):
        page.goto("/")
    settled(page)
    list(it.client.items("/vms"))  # by then the service has seen the VM
    announce(it, vm)
    arriving = page.locator(".pf-v6-c-alert").filter(has_text=f"{vm.name} is arriving from a")
    expect(arriving).to_contain_text("theirs r1")
    expect(arriving).to_contain_text(
        "announce_rounds: the setting destination_command_line does not allow it"
    )
    arriving.get_by_role("link", name=vm.name).click()
    expect(page.get_by_role("heading", name=vm.name, level=1)).to_be_visible()
    expect(arriving).to_be_visible()
    with virsh_migrate(it, vm):
        wait_for(lambda: any(it.client.items("/migrations", {"vm": vm.uuid})), "a record of it")
        (record,) = it.client.items("/migrations", {"vm": vm.uuid})
        expect(page.get_by_role("grid", name="Migrations").get_by_role("link")).to_be_visible()
        page.get_by_role("grid", name="Migrations").get_by_role("link").click()
        expect(page).to_have_url(re.compile(f"/migrations/{record['id']}$"))
        expect(page.get_by_text("others (observed)")).to_be_visible()
        expect(page.get_by_text("completed", exact=True)).to_be_visible()
        expect(page.get_by_text("--parallel --parallel-connections 3", exact=True)).to_be_visible()
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("link", name="All migrations")).to_be_visible()
        expect(arriving).to_have_count(0)
        page.get_by_role("link", name="All migrations").click()
        row = page.get_by_role("grid", name="Migrations").get_by_role("row", name=vm.name).first
        expect(row).to_contain_text("others")


def test_a_migrating_vm_leads_to_its_migration_and_not_to_a_second(it: Live, page: Page) -> None:
    it.profile("crawl", max_bandwidth_bytes_per_s="1MiB/s")
    with it.vm() as vm:
        running = it.migrate(vm, "b", profile="crawl")
        it.until_active(running)
        page.goto(f"/vms/{vm.uuid}")
        expect(page.get_by_role("link", name="Running migration")).to_be_visible()
        expect(page.get_by_role("button", name="Migrate", exact=True)).to_have_count(0)
        page.get_by_role("link", name="Running migration").click()
        expect(page).to_have_url(re.compile(f"/migrations/{running['id']}$"))
        it.client.delete(f"/migrations/{running['id']}")
        it.ended(running)


def test_migrations_that_exceeded_their_limit_are_two_clicks_away(it: Live, page: Page) -> None:
    it.profile("a-millisecond", downtime_limit_ms=1)
    it.profile("a-minute", downtime_limit_ms=60_000)
    with it.vm() as vm:
        over, kept = (
            it.ended(it.migrate(vm, to, profile=profile))
            for to, profile in (("b", "a-millisecond"), ("a", "a-minute"))
        )
    assert [each["downtime_exceeded"] for each in (over, kept)] == [True, False], (over, kept)

    def row(record: Document) -> Locator:
        grid = page.get_by_role("grid", name="Migrations")
        return grid.locator(f"a[href='/migrations/{record['id']}']")

    page.goto("/")
    with within(2) as hand:
        hand.click(navigate(page, "Migrations"))
        expect(row(over)).to_be_visible()
        expect(row(kept)).to_be_visible()
        hand.click(page.get_by_role("button", name="Exceeded their limit"))
        expect(page).to_have_url(re.compile(r"/migrations\?downtime=exceeded$"))
        expect(row(kept)).to_have_count(0)
        expect(row(over)).to_be_visible()
    page.get_by_role("button", name="Show any downtime").click()
    expect(row(kept)).to_be_visible()
