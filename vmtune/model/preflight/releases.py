"""Releases of libvirt and QEMU that cannot migrate together."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import VmFacts
from vmtune.model.plan.situation import Destination, Situation
from vmtune.model.versions import Version

_WITHOUT_DETACH = Version(11, 1)
"""The first QEMU whose command ``migrate`` has no argument ``detach`` (its removed-features.rst).
It refuses arguments that it does not know."""
_SEEN_TO_SEND_DETACH = Version(11, 3, 0)
"""The newest libvirt that was seen to send it: each migration of a QEMU 11.1 failed with "Parameter
'detach' is unexpected"."""
_SEEN_WITHOUT = "12.8"
_COUNTS_ENTRIES = Version(11, 1)
"""The first QEMU that refuses a virtio queue which is longer than the one that it has allocated:
"VQ 0 vring.num 1024 exceeds allocated max 256". Maintenance releases of older ones give all queues
1,024 entries (virtio_add_queue in 10.0.13's hw/virtio/virtio.c, which says that it does so before
11.1)."""


def may_outgrow(source: Version, destination: Destination) -> bool:
    """Whether the VM's virtio queues may be too long for the destination's QEMU."""
    there = _version_there(destination)
    return source < _COUNTS_ENTRIES and there is not None and there >= _COUNTS_ENTRIES


def check_releases(situation: Situation) -> Iterator[Finding]:
    """What stands against the two hosts' releases."""
    destination = situation.destination
    if destination is None:
        return
    yield from _libvirt_and_qemu(situation)
    if may_outgrow(situation.vm.qemu, destination):
        yield from _queues(situation.vm, destination)


def _queues(vm: VmFacts, destination: Destination) -> Iterator[Finding]:
    longer = [each for each in vm.virtio_queues if each.entries > each.configured_entries]
    if longer:
        evidence: dict[str, str | int] = {
            "qemu": str(vm.qemu),
            "entries": max(each.entries for each in longer),
            "devices": ", ".join(f"{each.device}: {each.configured_entries}" for each in longer),
            "there": str(_version_there(destination)),
        }
        yield Finding("virtio_queues_too_long", evidence=evidence)


def _version_there(destination: Destination) -> Version | None:
    return destination.vm.qemu if destination.vm else destination.host.qemu


def _libvirt_and_qemu(situation: Situation) -> Iterator[Finding]:
    """The source's libvirt gives the order to the source's QEMU."""
    libvirt, qemu = situation.host.libvirt, situation.vm.qemu
    if libvirt is None:
        return
    if qemu >= _WITHOUT_DETACH and libvirt <= _SEEN_TO_SEND_DETACH:
        words = {"libvirt": str(libvirt), "qemu": str(qemu), "works": _SEEN_WITHOUT}
        yield Finding("libvirt_too_old_for_qemu", evidence=words)
