"""Host diagnostics: examines a host and reports problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from vmtune.errors import Conflict
from vmtune.model.doctor.facts import Examined, KvmSeen, ProfileNeeds, Seen, SkippedCheck
from vmtune.model.doctor.rules import Diagnosis, diagnose
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.model.profile import Subject, explain
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store

_BY_LIBVIRT = "libvirt"
_ELSEWHERE = (
    "the host is another machine: run `vmtune doctor` there, or ask its own service with --url"
)
_NOT_FROM_HERE = (
    "the kernel and its srcutree parameters",
    "vm.max_map_count",
    "net.core.optmem_max",
    "vm.unprivileged_userfaultfd",
    "locked-memory limits",
    "KVM's dirty ring",
    "network cards",
    "programs",
)


class DoctorService:
    """Examines the hosts that vmtune manages.

    :param examine: looks at this machine; may block.
    """

    def __init__(
        self,
        store: Store,
        hosts: HostService,
        profiles: ProfileService,
        examine: Callable[[], Examined],
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._profiles = profiles
        self._examine = examine

    async def diagnose(self, host: str) -> Diagnosis:
        """The problems of a host, and what could not be examined. Changes nothing.

        :raise NotFound: no such host.
        :raise HostUnreachable: it does not answer.
        """
        facts = await self._hosts.facts(host)
        if facts.local:
            seen = known_by(await asyncio.to_thread(self._examine), facts)
        else:
            seen = known_by(Examined(), facts)
            skipped_checks = tuple(SkippedCheck(what, _ELSEWHERE) for what in _NOT_FROM_HERE)
            seen = replace(seen, skipped_checks=skipped_checks)
        return diagnose(host, seen, await self._wanted(host))

    async def _wanted(self, host: str) -> ProfileNeeds:
        """What the profiles want that are assigned to the host's VMs."""
        listing = await self._hosts.list_vms(host)
        assignments = await asyncio.to_thread(self._store.assignments.all)
        profiles: set[str] = set()
        for vm in listing.vms:
            try:
                winner = explain(assignments, Subject(vm.summary.uuid, host, vm.labels)).winner
            except Conflict:
                continue  # a tie, which the plan reports
            if winner is not None:
                profiles.add(winner.profile)
        wanted = ProfileNeeds()
        for name in sorted(profiles):
            values = (await self._profiles.get(name)).current.values
            wanted = _with_profile(wanted, name, values)
        return wanted


def _with_profile(wanted: ProfileNeeds, profile: str, values: Mapping[str, Value]) -> ProfileNeeds:
    """*wanted*, and what one more profile wants."""
    channels = 0
    if values.get("multifd") is True:
        given = values.get("multifd_channels", BUILT_IN["multifd_channels"].default)
        channels = given if isinstance(given, int) else 0
    zero_copy = wanted.zero_copy or values.get("zero_copy_send") is True
    if channels > wanted.channels:
        return ProfileNeeds(channels, profile, zero_copy)
    return replace(wanted, zero_copy=zero_copy)


def known_by(seen: Examined, facts: HostFacts) -> Examined:
    """*seen*, corrected by the host's driver: its daemon may have a network and capabilities of its
    own."""
    optmem = facts.sysctls.get("net_core_optmem_max_bytes")
    maps = facts.sysctls.get("vm_max_map_count")
    if optmem is not None:
        seen = replace(
            seen, optmem_max_bytes=Seen(optmem, "/proc/sys/net/core/optmem_max of its network")
        )
    if maps is not None:
        seen = replace(seen, max_map_count=Seen(maps, "/proc/sys/vm/max_map_count"))
    if facts.kernel and seen.kernel is None:
        seen = replace(seen, kernel=Seen(facts.kernel, "the host's facts"))
    if facts.cpus is not None and seen.cpus is None:
        seen = replace(seen, cpus=Seen(facts.cpus, f"{_BY_LIBVIRT}: node info"))
    if facts.libvirt is not None:
        seen = replace(seen, libvirt=Seen(str(facts.libvirt), _BY_LIBVIRT))
    if facts.qemu is not None:
        seen = replace(seen, qemu_versions=((_BY_LIBVIRT, facts.qemu),))
    direct = facts.connection is Connection.QMP
    if direct:
        seen = replace(seen, libvirt=None)  # it may be installed, but manages nothing here
    if facts.can_lock_beyond_limits is not None:
        whose = "the service's" if direct else "the daemon's"
        raises = Seen(facts.can_lock_beyond_limits, f"CapEff of {whose} /proc/PID/status")
        seen = replace(seen, can_raise_memlock=raises)
    if facts.kvm is False or (facts.kvm and seen.kvm is None):
        where = f"{_BY_LIBVIRT}: domain capabilities" if facts.libvirt else "/dev/kvm"
        seen = replace(seen, kvm=KvmSeen(facts.kvm, where=where))
    return seen
