"""What TLS sends between two machines, by what they sent, against a guest that dirties more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hosts.broken_ways import hosts
from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.machines import live_machines, why_no_machines
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
FULL = Workload(region_bytes=256 << 20, stride_bytes=4096, random_percent=100, idle_ms=60_000)
WRITER = Workload(region_bytes=1 << 30, stride_bytes=4096)


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines() as made, hosts(made, "tls"):
        made.profile("encrypted", tls=True)
        yield made


def rates(live: Live, migration: dict[str, Any]) -> list[int]:
    """What the guest dirtied in bytes a second, as often as QEMU looked."""
    samples = live.client.items(f"/migrations/{migration['id']}/samples")
    return [each["dirty_pages_per_s"] * each["page_size_bytes"] for each in samples]


def test_a_guest_that_dirties_more_than_tls_sends_is_told_beforehand(live: Live) -> None:
    paces = []
    with live.vm(memory_bytes=512 << 20, workload=FULL) as vm:
        for to in "ba":
            done = live.ended(live.migrate(vm, to, profile="encrypted"))
            assert done["state"] == "completed", done["failure"]
            totals = done["totals"]
            paces.append(totals["transferred_bytes"] * 1000 // totals["total_time_ms"])
    with live.vm(memory_bytes=2 << 30, workload=WRITER) as vm:
        clear = live.migrate(vm, "b")
        wait_for(lambda: any(rates(live, clear)), "QEMU to say what the guest dirties")
        live.client.delete(f"/migrations/{clear['id']}")
        live.ended(clear)
        dirtied = max(rates(live, clear))
        print(
            f"TLS sent {[pace >> 20 for pace in paces]} MiB/s, guest dirties {dirtied >> 20} MiB/s"
        )
        if dirtied <= max(paces) * 1.2:
            pytest.skip("this machine's TLS sends as much as its guest dirties")
        asked = {"profile": "encrypted", "destination": "b"}
        plan = live.client.post(f"/vms/{vm.uuid}/plan", asked)
        (told,) = [f for f in plan["findings"] if f["code"] == "tls_slower_than_guest"]
        assert told["evidence"]["dirties_bytes"] == dirtied
        assert told["evidence"]["records"] == len(paces)
        assert told["evidence"]["sends_bytes"] < dirtied
