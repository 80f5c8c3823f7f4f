"""What the service tells the doctor: what drivers know, and what assigned profiles want."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.examples.facts import direct_host, host
from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.errors import HostUnreachable, NotFound
from vmtune.hypervisor.linux.doctor_probe import Probes, examine
from vmtune.model.doctor.facts import Examined, KvmSeen, Seen
from vmtune.model.doctor.rules import diagnose
from vmtune.model.profile import Target
from vmtune.model.versions import Version
from vmtune.services.hosts.doctor import DoctorService, known_by

CPUS = {"proc/cpuinfo": "processor\t: 0\nprocessor\t: 1\n"}


def probes(root: Path) -> Probes:
    """A machine with two CPUs, of which nothing else is known."""
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/cpuinfo").write_text(CPUS["proc/cpuinfo"])
    return Probes(
        root,
        kvm=lambda path: KvmSeen(present=True, dirty_ring_bytes=4096),
        gathers=lambda nic: None,
        which=lambda name: name,
        version=lambda name: None,
    )


def service(on: World, root: Path) -> DoctorService:
    return DoctorService(on.store, on.hosts, on.profiles, lambda: examine(probes(root)))


async def test_channels_are_those_of_profiles_that_the_hosts_vms_get(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        doctor = service(it, tmp_path)
        await it.profile("fast", multifd=True, multifd_channels=8)
        await it.profile("plain", multifd=True)
        await it.profile("off", multifd=False)
        assert (await doctor.diagnose("a")).findings == ()
        await it.assignments.add(Target.DEFAULT, "", "fast")
        (found,) = (await doctor.diagnose("a")).findings
        assert (found.code, found.evidence["profile"]) == ("too_few_spare_cpus", "fast")
        assert (found.evidence["channels"], found.evidence["cpus"]) == (8, 2)
        await it.assignments.add(Target.VM, str(VM), "plain")
        assert (await doctor.diagnose("a")).findings == ()  # two channels, two CPUs
        it.drivers["a"].reachable = False
        with pytest.raises(HostUnreachable):
            await doctor.diagnose("a")
        with pytest.raises(NotFound):
            await doctor.diagnose("z")


async def test_of_another_machine_it_says_what_it_could_not_see(tmp_path: Path) -> None:
    remote = host("b", local=False, qemu=Version(6, 2), libvirt=Version(8), sysctls={}, kvm=False)
    async with world(tmp_path) as it:
        it.drivers["b"]._facts = remote
        found = await service(it, tmp_path).diagnose("b")
    assert [f.code for f in found.findings] == ["kvm_missing", "qemu_too_old", "libvirt_too_old"]
    told = {skipped_checks.what for skipped_checks in found.skipped_checks}
    assert {"vm.max_map_count", "locked-memory limits", "KVM's dirty ring"} <= told
    assert all("vmtune doctor" in skipped_checks.why for skipped_checks in found.skipped_checks)


def test_a_libvirt_that_drives_nothing_is_left_alone() -> None:
    here = Examined(
        libvirt=Seen("8.0.0", "libvirtd --version"), can_raise_memlock=Seen(True, "CapEff")
    )
    seen = known_by(here, direct_host(qemu=None, can_lock_beyond_limits=False))
    assert diagnose("x", seen).findings == ()
    assert seen.can_raise_memlock == Seen(False, "CapEff of the service's /proc/PID/status")


def test_a_daemons_own_network_and_abilities_go_before_this_machines() -> None:
    here = Examined(
        optmem_max_bytes=Seen(131072, "/proc/sys/net/core/optmem_max"),
        cpus=Seen(64, "/proc/cpuinfo"),
        kvm=KvmSeen(present=True, dirty_ring_bytes=4096),
        can_raise_memlock=Seen(True, "CapEff of /proc/self/status"),
    )
    facts = host(sysctls={"net_core_optmem_max_bytes": 4096}, can_lock_beyond_limits=False)
    seen = known_by(here, facts)
    assert [f.code for f in diagnose("x", seen).findings if f.tunable] == [
        "host_optmem_low",
        "daemon_cannot_raise_memlock",
        "qemu_postcopy_alone",
    ]
    assert seen.cpus == Seen(64, "/proc/cpuinfo")
    assert seen.kvm == here.kvm
