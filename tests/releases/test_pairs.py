"""Migrations between machines of different Debian releases, as in a rolling upgrade.

With RECORD_RELEASES set, what was seen is written to docs/generator/releases.json, from
which the documentation's table is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.machines import on, said, why_no_machines
from tests.support.hosts.releases import pairs, record, release_pair, versions
from vmtune import lab
from vmtune.model.workload import Workload

NONE = why_no_machines() or ("" if pairs() else "no two releases are unpacked: make lab-releases")
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
SMALL: dict[str, Any] = {"memory_bytes": 96 << 20, "workload": CALM}
PROFILES: dict[str, dict[str, Any]] = {
    "plain": {"max_bandwidth_bytes_per_s": 16 << 20, "downtime_limit_ms": 450,
              "auto_converge": True, "cpu_throttle_initial_percent": 30},
    "parallel": {"multifd": True, "multifd_channels": 3, "max_bandwidth_bytes_per_s": 16 << 20},
    "encrypted": {"tls": True},
}  # fmt: skip
COPIES = {"local-disk": {"copy_storage": True, "copy_source_images": "remove"}}
FOLDER = "/var/lib/libvirt/images"
IMAGE = f"{FOLDER}/local.raw"
LONG_QUEUE = 1024
"""As many entries as QEMU 10.0.13 gives each queue."""


@pytest.fixture(scope="module", params=pairs(), ids="-".join)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Live, dict[str, Any]]]:
    """The machines, and what is seen of them."""
    older, newer = request.param
    seen: dict[str, Any] = {"older": older, "newer": newer, "migrations": {}}
    with release_pair(older, newer, tmp_path_factory.mktemp("pair")) as live:
        seen |= versions(live)
        for name, values in (PROFILES | COPIES).items():
            live.profile(name, **values)
        yield live, seen
    record(**seen)


def start_on(live: Live, which: str, name: str) -> lab.LabVm:
    """A VM of the newest machine type that the host has."""
    return lab.define_vm(live.settings, lab.VmSettings(name=name, **SMALL), host=which)


def blockers(live: Live, vm: lab.LabVm, to: str, profile: str = "") -> list[str]:
    which = {"profile": profile} if profile else {"without_profile": True}
    plan = live.client.post(f"/vms/{vm.uuid}/plan", {"destination": to, **which})
    return list(plan["blockers"])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_vm_goes_to_the_newer_release_and_back(
    pair: tuple[Live, dict[str, Any]], profile: str
) -> None:
    live, seen = pair
    completed = seen["migrations"][profile] = []
    with live.vm(**SMALL) as vm:
        for to in "ba":
            done = live.ended(live.migrate(vm, to, profile=profile))
            assert done["state"] == "completed", done["failure"]
            proven = {each["tunable"]: each["status"] for each in done["outcomes"]}
            assert set(proven) == set(PROFILES[profile])
            in_force = sorted(name for name, status in proven.items() if status == "effective")
            assert in_force, done["outcomes"]
            assert live.states(vm) == {to: "running"}
            completed.append(
                {"profile": profile, "to": "newer" if to == "b" else "older",
                 "effective": in_force}
            )  # fmt: skip


@contextmanager
def local_disk(live: Live, vm: lab.LabVm, queue_entries: int = 256) -> Iterator[str]:
    """An image on the older machine's own storage, half full, and what is in it; gone from both."""
    a = live.status.hosts[0]
    said(a, "mkdir", "-p", FOLDER)
    # The releases' roots have no qemu-img.
    said(a, "dd", "if=/dev/urandom", f"of={IMAGE}", "bs=1M", "count=32", "status=none")
    said(a, "truncate", "--size", "64M", IMAGE)
    said(live.status.hosts[1], "mkdir", "-p", FOLDER)
    disk = (
        "<disk type='file' device='disk'>"
        f"<driver name='qemu' type='raw' cache='none' queue_size='{queue_entries}'/>"
        f"<source file='{IMAGE}'/><target dev='vda' bus='virtio'/></disk>"
    )
    lab.virsh(a.uri, "attach-device", vm.name, "/dev/stdin", "--live", "--config", stdin=disk)
    try:
        yield digest(a)
    finally:
        for host in live.status.hosts:
            on(host, "rm", "-f", IMAGE)


def digest(host: lab.HostStatus) -> str:
    return said(host, "sha256sum", IMAGE)


def too_long(seen: dict[str, Any]) -> bool:
    """Whether the older QEMU gives virtio queues more entries than the newer one takes."""
    return (seen["older_has"]["qemu"], seen["newer_has"]["qemu"]) == ("10.0.13", "11.1.3")


def test_a_virtio_disk_that_the_newer_qemu_refuses_is_refused_beforehand(
    pair: tuple[Live, dict[str, Any]],
) -> None:
    live, seen = pair
    if not too_long(seen):
        pytest.skip("the newer QEMU takes the older one's queues")
    with live.vm(**SMALL) as vm, local_disk(live, vm):
        assert blockers(live, vm, "b", "local-disk") == ["virtio_queues_too_long"]


def test_a_local_disk_is_copied_to_the_newer_release_and_back(
    pair: tuple[Live, dict[str, Any]],
) -> None:
    live, seen = pair
    completed = seen["migrations"]["local-disk"] = []
    hosts = dict(zip("ab", live.status.hosts, strict=True))
    entries = LONG_QUEUE if too_long(seen) else 256
    with live.vm(**SMALL) as vm, local_disk(live, vm, entries) as content:
        assert blockers(live, vm, "b", "local-disk") == []
        for to in "ba":
            here = "b" if to == "a" else "a"
            done = live.ended(live.migrate(vm, to, profile="local-disk"))
            assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
            (disk,) = done["disks"]
            assert (disk["target"], disk["created"], disk["source_image"]) == (
                "vda", True, "removed",
            )  # fmt: skip
            proven = {each["tunable"]: each["status"] for each in done["outcomes"]}
            assert proven == dict.fromkeys(COPIES["local-disk"], "effective")
            assert live.states(vm) == {to: "running"}
            assert digest(hosts[to]) == content
            assert on(hosts[here], "test", "-e", IMAGE).returncode == 1
            completed.append(
                {"profile": "local-disk", "to": "newer" if to == "b" else "older",
                 "effective": sorted(proven)}
            )  # fmt: skip


def test_a_rolling_upgrade_and_what_may_not_go_back(pair: tuple[Live, dict[str, Any]]) -> None:
    live, seen = pair
    seen["stays"] = ""
    old = [start_on(live, "a", f"old{number}") for number in range(2)]
    new = start_on(live, "b", "new")
    names = [vm.name for vm in (*old, new)]
    try:
        evacuated(live, "a", moves=2)
        assert all(live.states(vm) == {"b": "running"} for vm in old)
        # Before anything moves: who was begun on the newer release stays there.
        assert blockers(live, new, "a") == ["machine_not_offered"]
        plan = live.client.post("/hosts/b/evacuations/plan", {})
        assert (plan["movable"], plan["left"]) == (2, 1)
        (stays,) = (vm for vm in plan["vms"] if vm["name"] == "new")
        assert stays["blockers"] == ["machine_not_offered"]
        for vm in old:
            assert blockers(live, vm, "a") == []
        evacuated(live, "b", moves=2)
        assert all(live.states(vm) == {"a": "running"} for vm in old)
        assert live.states(new) == {"b": "running"}
        seen["stays"] = "machine_not_offered"
    finally:
        for host in live.status.hosts:
            for each in lab.status(live.settings).vms:
                if each.name in names and each.host == host.name:
                    lab.virsh(host.uri, "destroy", each.name)
                    lab.virsh(host.uri, "undefine", each.name)


def evacuated(live: Live, host: str, moves: int) -> None:
    """Empty a host as far as its VMs can leave it."""
    begun = live.client.post(f"/hosts/{host}/evacuations", {})
    path = f"/hosts/{host}/evacuations/{begun['id']}"
    wait_for(lambda: live.client.get(path)["ended"], f"the evacuation of {host} to end", 300)
    done = live.client.get(path)
    assert done["moved"] == moves, done
