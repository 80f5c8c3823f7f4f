"""Iothread settings through libvirt, so that it knows of them and hands them on when the VM
migrates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.qemu.write import blamed
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import LibvirtKind, QmpKind, Value

_MIN, _MAX = "iothread_thread_pool_min", "iothread_thread_pool_max"
_PARTNER = {_MIN: _MAX, _MAX: _MIN}


def is_iothread_call(change: Change) -> bool:
    """Whether libvirt has a call for it: the setting, and the iothread, are known to it."""
    row = BUILT_IN.get(change.tunable)
    libvirt = row.libvirt if row else None
    return (
        row is not None
        and row.qmp is not None
        and row.qmp.kind is QmpKind.IOTHREAD
        and libvirt is not None
        and libvirt.kind is LibvirtKind.CALL
        and (not change.owner or iothread_number(change.owner) > 0)
    )


def iothread_number(owner: str) -> int:
    """libvirt's number of the iothread that it calls ``iothreadN`` in QEMU; 0 for others."""
    number = owner.removeprefix("iothread")
    return int(number) if number.isdigit() and number != owner else 0


def names_to_read(changes: Sequence[Change]) -> set[str]:
    """The tunables whose readings :func:`set_iothreads` needs."""
    names = {change.tunable for change in changes}
    return names | {_PARTNER[name] for name in names if name in _PARTNER}


def set_iothreads(domain: Domain, changes: Sequence[Change], before: Mapping[str, Reading]) -> None:
    """Set *changes* in their order, and stop at the first refusal. Blocks.

    A thread-pool limit goes with the other one as it is: libvirt takes a limit that was never set
    for -1, and refuses a greater minimum. It compares the two before it asks QEMU, which would keep
    a refused value (util/async.c).

    :param before: readings of :func:`names_to_read`.
    :raise CommandRefused: with the field of the tunable.
    """
    now: dict[tuple[str, str], Value] = {
        (name, owner): value
        for name, reading in before.items()
        for owner, value in reading.parts.items()
    }
    for change in changes:
        partner = _PARTNER.get(change.tunable, "")
        owners = [change.owner] if change.owner else sorted(before[change.tunable].parts)
        for owner in owners:
            parameters = {_libvirt_name(change.tunable): int(change.value)}
            if (partner, owner) in now:
                parameters[_libvirt_name(partner)] = int(now[partner, owner])
            try:
                domain.set_iothread(iothread_number(owner), parameters)
            except CommandRefused as refusal:
                raise blamed(refusal, [change]) from refusal
            now[change.tunable, owner] = change.value


def _libvirt_name(tunable: str) -> str:
    libvirt = BUILT_IN[tunable].libvirt
    assert libvirt is not None, f"{tunable} has no libvirt name"
    return libvirt.name
