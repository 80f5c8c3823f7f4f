"""Three hosts, one of which dies while the others work: what is done there is not held up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.machines import by_its_bus, live_machines, said, why_no_machines
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
SMALL: dict[str, Any] = {
    "memory_bytes": 64 << 20,
    "workload": Workload(region_bytes=4 << 20, idle_ms=200),
}
VMS, AT_ONCE = 4, 10
SSHD = "for pid in $(pgrep --ns $$ --nslist net -x sshd); do kill -{} $pid; done"
DAEMON = "kill -{} $(cat /run/libvirtd.pid)"
WAYS = {
    "sshd killed": (SSHD.format("KILL"), "/usr/sbin/sshd"),
    "libvirtd killed": (
        DAEMON.format("KILL"),
        "/usr/sbin/libvirtd --daemon --listen --pid-file /run/libvirtd.pid",
    ),
    "libvirtd hanging": (DAEMON.format("STOP"), DAEMON.format("CONT")),
}


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines(hosts=3) as made:
        for name, host in zip("abc", made.status.hosts, strict=True):
            uri = f"qemu+ssh://root@{host.name}/system"
            made.client.post("/hosts", {"name": name, "uri": uri, "peer_uri": uri})
        made.profile("paced", downtime_limit_ms=450)
        yield made


def apply_and_revert(live: Live, vm: lab.LabVm) -> None:
    applied = live.client.post(f"/vms/{vm.uuid}/applications", {"profile": "paced"})
    assert applied["state"] == "applied", applied
    reverted = live.client.post(f"/applications/{applied['id']}/revert", {})
    assert reverted["state"] == "reverted", reverted


def there_and_back(live: Live, vm: lab.LabVm) -> None:
    for to in "ba":
        record = live.ended(live.migrate(vm, to, profile="paced"))
        assert record["state"] == "completed", record["failure"]


@pytest.mark.parametrize("how", WAYS)
def test_what_is_done_on_the_others_goes_well(live: Live, how: str) -> None:
    breaks, restores = WAYS[how]
    c = by_its_bus(live.host("c"))
    with ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as pool:
        vms = [stack.enter_context(live.vm(**SMALL)) for _ in range(VMS)]
        kept, *moving = vms
        for vm in moving:  # known, and looked at, while all is well
            live.client.get(f"/vms/{vm.uuid}")
        begun = [pool.submit(there_and_back, live, vm) for vm in moving]
        said(c, "sh", "-ec", breaks)
        try:
            begun += [pool.submit(live.client.get, "/vms") for _ in range(AT_ONCE - VMS)]
            for work in begun:
                work.result()
            for _ in range(3):
                apply_and_revert(live, kept)
            with pytest.raises(Refused) as refusal:
                live.client.get("/hosts/c/findings")
            assert refusal.value.problems[0].code == "host_unreachable"
            # It is told by name, in lists as well, which have all of the others.
            listing = live.client.get("/vms")
            assert {vm.uuid for vm in vms} <= {each["uuid"] for each in listing["items"]}
        finally:
            said(c, "sh", "-ec", restores)
        wait_for(lambda: reached(live, "c"), "host c to be reached again")


def reached(live: Live, name: str) -> bool:
    try:
        live.client.get(f"/hosts/{name}/findings")
    except Refused:
        return False
    return True
