"""Disks that are copied along, in a browser: two machines with file systems of their own."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.local_disks import (
    MIB,
    POOL,
    VIRSH,
    LocalDisk,
    make_disk,
    own_file_systems,
    vm_on,
)
from tests.support.hosts.machines import live_machines, on, said, why_no_machines
from tests.support.hosts.relay import relayed_from
from tests.support.served.browser import browsing, settled, tab_of
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = [
    pytest.mark.skipif(bool(NONE), reason=NONE or "never"),
    pytest.mark.timeout(900),
]
CALM = Workload(region_bytes=2 * MIB, idle_ms=2000, check=1)
SLOWLY = {
    "copy_storage": "on",
    "max_bandwidth_bytes_per_s": "2MiB/s",
    "downtime_limit_ms": "2000ms",
}
"""Half a minute of the disk, and some seconds of the memory."""
FAST = {"max_bandwidth_bytes_per_s": "400MiB/s"}
WAITS = "1 of 1 copy disks from or to a"
SEVERAL = 5
LISTENS = 8470
"""The port that a service takes by itself."""
TARGET = "hda"


@pytest.fixture(scope="module")
def apart() -> Iterator[Live]:
    """Machines that share no storage, and a service on one of them."""
    with live_machines() as made:
        own_file_systems(made, 1 << 30)
        made.profile("slowly", **SLOWLY)
        yield made


@pytest.fixture(scope="module")
def vms(apart: Live) -> Iterator[list[tuple[lab.LabVm, LocalDisk]]]:
    """Two, each with a disk of its own."""
    with ExitStack() as stack:
        disks = [make_disk(apart, 128 * MIB, format, format) for format in ("qcow2", "raw")]
        yield [(stack.enter_context(vm_on(apart, disk, CALM)), disk) for disk in disks]


@pytest.fixture(scope="module")
def origin(apart: Live) -> Iterator[str]:
    """Where a browser finds that service."""
    with relayed_from(apart.host("a").namespace, LISTENS) as made:
        yield made


@pytest.fixture(scope="module")
def there(apart: Live, browser: Browser, origin: str) -> Iterator[BrowserContext]:
    """A browser that is signed in to it."""
    made = apart.client.post("/tokens", {"name": "browser", "scopes": ["admin"]})
    with browsing(browser, origin, str(made["token"]), locale="en-GB") as context:
        yield context


@pytest.fixture
def page(there: BrowserContext, origin: str) -> Iterator[Page]:
    with tab_of(there, origin) as made:
        yield made.page


def order(live: Live, vm: lab.LabVm, to: str, **values: Any) -> Document:
    body = {"vm": vm.uuid, "destination": to, "values": values}
    return live.client.post("/migrations", body)


def several_samples(live: Live, id: str) -> None:
    samples = f"/migrations/{id}/disk-samples"
    wait_for(lambda: len(list(live.client.items(samples))) >= SEVERAL, "several samples", 120)


def charts(page: Page) -> list[Locator]:
    names = ("Copy of disks and writes over time", "Remaining of disks over time")
    return [page.get_by_role("img", name=name) for name in names]


def test_a_copy_is_followed_and_what_waits_for_it_says_so(
    apart: Live, vms: list[tuple[lab.LabVm, LocalDisk]], page: Page
) -> None:
    (first, first_disk), (second, _) = vms
    running = order(apart, first, "b", **SLOWLY)
    several_samples(apart, running["id"])
    waiting = order(apart, second, "b", copy_storage="on")

    page.goto(f"/migrations/{running['id']}")
    copied = page.get_by_role("region", name="Copied disks")
    bar = copied.get_by_role("progressbar", name=f"{TARGET}: {first_disk.path}")
    expect(bar).to_be_visible()
    expect(copied).to_contain_text(re.compile(r"of 128 MiB at .*/s"))
    expect(page.get_by_text(re.compile("^copying disks · .* · then the memory$"))).to_be_visible()
    for chart in charts(page):
        expect(chart).to_be_visible()
    seen = str(bar.get_attribute("aria-valuenow"))
    expect(bar).not_to_have_attribute("aria-valuenow", seen)

    page.goto(f"/migrations/{waiting['id']}")
    notice = page.get_by_text(f"{second.name} waits in the queue: {WAITS}")
    expect(notice).to_be_visible()
    expect(page.get_by_text(f"0 ahead; {WAITS}")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    apart.client.patch(f"/migrations/{running['id']}", {"values": FAST})
    # Without a reload, once the first one has ended.
    expect(page.get_by_text("completed", exact=True)).to_be_visible(timeout=120_000)
    expect(notice).to_have_count(0)
    assert apart.ended(running)["state"] == "completed"
    ends = page.get_by_role("region", name="Copied disks").get_by_role("progressbar")
    expect(ends).to_have_attribute("aria-valuenow", "100")


def test_an_evacuation_that_copies_disks_is_followed(
    apart: Live, vms: list[tuple[lab.LabVm, LocalDisk]], page: Page
) -> None:
    a, _ = apart.status.hosts
    for vm, disk in vms:  # back to where their images still are
        assert apart.states(vm) == {"b": "running"}
        on(a, "rm", "-f", disk.path)
    said(a, *VIRSH, "pool-refresh", POOL)
    page.goto("/hosts/b/evacuate")
    page.get_by_label("Profile", exact=True).select_option("slowly")
    page.get_by_role("checkbox", name=re.compile("^Begin maintenance")).uncheck()
    settled(page)
    for _, disk in vms:
        expect(
            page.get_by_text(re.compile(f"^copies {TARGET}: {re.escape(disk.path)}, "))
        ).to_be_visible()
    page.get_by_role("button", name="Move 2 VMs").click()
    expect(page).to_have_url(re.compile("/hosts/b/evacuations/[-0-9a-f]{36}$"))
    listed = page.get_by_role("grid", name="VMs")
    rows = listed.get_by_role("row")
    expect(listed).to_contain_text("migrating", timeout=90_000)
    expect(listed).to_contain_text("requested")  # it waits for its turn
    expect(rows.filter(has=page.get_by_role("progressbar"))).to_have_count(1)

    def under_way() -> list[Document]:
        return [each for each in apart.client.items("/migrations") if each["phase"] == "disks"]

    evacuation = f"/hosts/b/evacuations/{page.url.rpartition('/')[2]}"
    for _ in vms:
        wait_for(lambda: under_way() != [], "a copy", 120)
        (one,) = under_way()
        several_samples(apart, one["id"])
        apart.client.patch(f"/migrations/{one['id']}", {"values": FAST})
        assert apart.ended(one)["state"] == "completed"
    expect(rows.get_by_text("moved", exact=True)).to_have_count(2, timeout=90_000)
    wait_for(lambda: apart.client.get(evacuation)["ended"], "the evacuation to end")
    for vm, _ in vms:
        assert apart.states(vm) == {"a": "running"}


def test_how_disks_are_copied_is_chosen_in_the_dialog(
    apart: Live, vms: list[tuple[lab.LabVm, LocalDisk]], page: Page
) -> None:
    (vm, disk), _ = vms
    assert apart.states(vm) == {"a": "running"}
    on(apart.status.hosts[1], "rm", "-f", disk.path)
    said(apart.status.hosts[1], *VIRSH, "pool-refresh", POOL)
    page.goto(f"/vms/{vm.uuid}")
    page.get_by_role("button", name="Migrate", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Destination").select_option("b")
    dialog.get_by_label("Copy local disks to the destination").check()
    only = dialog.get_by_role("checkbox", name=f"{TARGET}: {disk.path}")
    expect(only).to_be_checked()
    expect(only).to_be_disabled()  # one has to be left
    dialog.get_by_label("Bandwidth of each copy").fill("400 MiB/s")
    dialog.get_by_label("Bandwidth of each copy").press("Enter")
    expect(dialog.get_by_role("grid", name="Of the migration")).to_contain_text(
        "copy_bandwidth_bytes_per_s"
    )
    go = dialog.get_by_role("button", name="Migrate", exact=True)
    expect(go).to_be_enabled()
    go.click()
    expect(page).to_have_url(re.compile("/migrations/[-0-9a-f]{36}$"))
    record = {"id": page.url.rpartition("/")[2]}
    assert apart.ended(record)["state"] == "completed"
    assert apart.record(record)["values"] == {
        "copy_storage": True,
        "copy_bandwidth_bytes_per_s": 400 * MIB,
    }
