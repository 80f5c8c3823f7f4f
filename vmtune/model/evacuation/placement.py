"""Which VM goes where: pure, and the same for the same facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from vmtune import units
from vmtune.model.evacuation.evacuation import EvacuationVm
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.units import Unit

KEPT_FREE = 0.05
"""The share of a host's memory that no evacuation fills: for the host itself, and for the memory
that a QEMU takes besides its guest's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host that VMs could go to.

    :param room_bytes: memory that its guests may still be given; None if unknown, and then memory
        is not considered.
    :param expected: UUIDs that it awaits, where a VM needs a QEMU that waits for it (direct
        mode); None where none is needed.
    """

    name: str
    room_bytes: int | None
    expected: frozenset[UUID] | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each VM goes, and why the others go nowhere."""

    placed: Mapping[UUID, str]
    unplaced: Mapping[UUID, str]


def room_of(facts: HostFacts, promised_bytes: int) -> int | None:
    """How much memory a host may still give to guests.

    :param promised_bytes: what VMs that are on their way there will take.
    """
    if facts.memory_available_bytes is None:
        return None
    kept = int((facts.memory_bytes or 0) * KEPT_FREE)
    return max(0, facts.memory_available_bytes - kept - promised_bytes)


def why_not(host: HostFacts, source: HostFacts) -> str:
    """Why no VM of *source* can go to *host*; empty where some may."""
    if host.connection is not source.connection:
        return f"it is driven by {host.connection.value}, not by {source.connection.value}"
    if host.connection is Connection.LIBVIRT and host.uuid and host.uuid == source.uuid:
        return "it is the same machine"
    return ""


def place(
    vms: Iterable[EvacuationVm],
    hosts: Collection[Candidate],
    refused: Mapping[tuple[UUID, str], str] | None = None,
) -> Placement:
    """A host for each VM that one has room for.

    The largest VM first, each to the host with the most room left, so that the load spreads and
    small VMs fill what large ones left over. Hosts whose room is unknown come last, and get the
    same number of VMs each.

    :param refused: pairs of VM and host that a preflight has refused, with its words.
    """
    refused = refused or {}
    room = {host.name: host.room_bytes for host in hosts}
    given = dict.fromkeys(room, 0)
    placed: dict[UUID, str] = {}
    unplaced: dict[UUID, str] = {}
    for vm in sorted(vms, key=lambda vm: (-vm.memory_bytes, str(vm.vm))):
        fits: list[tuple[bool, int, int, str]] = []
        for host in hosts:
            left = room[host.name]
            awaited = host.expected is None or vm.vm in host.expected
            if not awaited or (vm.vm, host.name) in refused:
                continue
            if left is None or left >= vm.memory_bytes:
                fits.append((left is None, -(left or 0), given[host.name], host.name))
        if not fits:
            unplaced[vm.vm] = _why_nowhere(vm, hosts, room, refused)
            continue
        name = min(fits)[-1]
        placed[vm.vm] = name
        given[name] += 1
        left = room[name]
        room[name] = None if left is None else left - vm.memory_bytes
    return Placement(placed, unplaced)


def _why_nowhere(
    vm: EvacuationVm,
    hosts: Collection[Candidate],
    room: Mapping[str, int | None],
    refused: Mapping[tuple[UUID, str], str],
) -> str:
    if not hosts:
        return "there is no host that it could go to"
    reasons: list[str] = []
    for host in sorted(hosts, key=lambda host: host.name):
        left = room[host.name]
        if (vm.vm, host.name) in refused:
            reasons.append(f"{host.name}: {refused[vm.vm, host.name]}")
        elif host.expected is not None and vm.vm not in host.expected:
            reasons.append(f"{host.name}: no QEMU there waits for it")
        elif left is not None and left < vm.memory_bytes:
            needs, has = (units.render(n >> 20 << 20, Unit.BYTES) for n in (vm.memory_bytes, left))
            reasons.append(f"{host.name}: it needs {needs}, and there is room for {has}")
    shown = reasons[:_MAX_REASONS]
    more = f"; and {len(reasons) - len(shown)} more hosts" if len(reasons) > len(shown) else ""
    return "; ".join(shown) + more


_MAX_REASONS = 3
