"""Changes to a domain's XML that keep everything else, comments and foreign namespaces included."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from xml.dom import minidom
from xml.dom.minidom import Document, Element

from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.boot.edit import SETTINGS, check_edited, edit_setting
from vmtune.hypervisor.libvirt.boot.elements import child, children, remove_if_empty, root_of
from vmtune.hypervisor.libvirt.checked_xml import check_xml
from vmtune.model.migration.arriving import GIVEN_ON_ARRIVAL
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind, Side, Value

_QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
_DISK_ATTRIBUTES = {"virtio_blk_queues": "queues", "virtio_blk_queue_size": "queue_size"}


def edit_boot_xml(xml: str, changes: Sequence[Change]) -> str:
    """A persistent domain XML with the ``boot`` route's *changes* made.

    :param changes: a disk's owner is its target (``vda``), empty for all virtio disks.
    :raise CommandRefused: a change that has no place in this XML, with its field.
    """
    document = _parse(xml)
    for change in changes:
        if change.tunable == "dirty_ring_size_entries":
            _set_dirty_ring(document, int(change.value))
        elif change.tunable in _DISK_ATTRIBUTES:
            _set_disks(document, change)
        elif change.tunable in SETTINGS:
            edit_setting(document, change)
        else:
            raise CommandRefused(
                f"{change.tunable} is not a setting of the VM's configuration",
                field=f"values.{change.tunable}",
                code="not_a_boot_setting",
            )
    check_edited(document, {change.tunable: change.value for change in changes})
    return _text(document)


def _set_dirty_ring(document: Document, entries: int) -> None:
    root = root_of(document)
    if entries:
        kvm = child(child(root, "features"), "kvm")
        ring = child(kvm, "dirty-ring")
        ring.setAttribute("state", "on")
        ring.setAttribute("size", str(entries))
        return
    for features in children(root, "features"):
        for kvm in children(features, "kvm"):
            for ring in children(kvm, "dirty-ring"):
                kvm.removeChild(ring)
            remove_if_empty(kvm)
        remove_if_empty(features)


def _set_disks(document: Document, change: Change) -> None:
    found = False
    for devices in children(root_of(document), "devices"):
        for disk in children(devices, "disk"):
            target = next(children(disk, "target"), None)
            if target is None or target.getAttribute("bus") != "virtio":
                continue
            if change.owner in ("", target.getAttribute("dev")):
                found = True
                driver = child(disk, "driver")
                driver.setAttribute(_DISK_ATTRIBUTES[change.tunable], str(change.value))
    if not found:
        raise CommandRefused(
            f"the configuration has no virtio disk {change.owner}".rstrip(),
            field=f"values.{change.tunable}",
            code="no_such_part",
        )


_OTHER_PROPERTIES = {"decompress-threads": "x-decompress-threads"}
"""Where QEMU's object has another name for a parameter (migration/migration.c of 7.2)."""
_GLOBALS = {
    row.name: f"migration.{_OTHER_PROPERTIES.get(row.qmp.name, row.qmp.name)}"
    for row in BUILT_IN.values()
    if row.side is Side.DESTINATION and row.qmp and row.qmp.kind is QmpKind.PARAMETER
}
_OURS = {*_GLOBALS.values(), *GIVEN_ON_ARRIVAL.values()}


def edit_destination_xml(
    live: str, persistent: str | None, values: Mapping[str, Value]
) -> str | None:
    """The XML that the destination's QEMU is to be started with: *live* with a ``-global``
    argument for each of *values*. None where *live* will do as it is.

    Such arguments of an earlier migration are part of the live XML; those that the
    *persistent* one does not have are left out, so that a value applies only to the migration that
    requested it.

    :param values: tunables of the destination alone.
    :raise CommandRefused: one that QEMU takes in no other way; with its field.
    """
    for name in values:
        if name not in _GLOBALS:
            raise CommandRefused(
                f"{name} cannot be given to the destination by libvirt",
                field=f"values.{name}",
                code="no_destination_argument",
            )
    document = _parse(live)
    kept = {words for _, _, words in _ours(_parse(persistent))} if persistent else set()
    wanted = {_GLOBALS[name] for name in values}
    stale = [
        (block, pair)
        for block, pair, words in _ours(document)
        if words not in kept or words.partition("=")[0] in wanted
    ]
    if not stale and not values:
        return None
    for block, pair in stale:
        for argument in pair:
            block.removeChild(argument)
        remove_if_empty(block)
    for name, value in values.items():
        _add_arguments(document, "-global", f"{_GLOBALS[name]}={value}")
    return _text(document)


def edit_arriving_xml(xml: str, values: Mapping[str, Value]) -> str | None:
    """The XML of a VM that is about to arrive, with a ``-global`` argument for each of
    *values* instead of those that it has for them. None where it will do as it is.

    Other such arguments stay: this XML does not show their owner.

    :param values: of :data:`~vmtune.model.migration.arriving.GIVEN_ON_ARRIVAL`.
    """
    document = _parse(xml)
    words = {GIVEN_ON_ARRIVAL[name]: f"{GIVEN_ON_ARRIVAL[name]}={v}" for name, v in values.items()}
    there = [
        (block, pair, text)
        for block, pair, text in _globals(document)
        if text.partition("=")[0] in words
    ]
    if sorted(text for _, _, text in there) == sorted(words.values()):
        return None
    for block, pair, _ in there:
        for argument in pair:
            block.removeChild(argument)
        remove_if_empty(block)
    for text in words.values():
        _add_arguments(document, "-global", text)
    return _text(document)


def _ours(document: Document) -> list[tuple[Element, tuple[Element, Element], str]]:
    """Each pair of arguments ``-global migration.announce-...=N`` and the like."""
    return [pair for pair in _globals(document) if pair[2].partition("=")[0] in _OURS]


def _globals(document: Document) -> list[tuple[Element, tuple[Element, Element], str]]:
    """Each pair of arguments ``-global TEXT``: the block that it is in, the pair, and the
    second's text."""
    return [
        (block, (option, argument), argument.getAttribute("value"))
        for block in document.getElementsByTagNameNS(_QEMU_NAMESPACE, "commandline")
        for option, argument in itertools.pairwise(
            list(block.getElementsByTagNameNS(_QEMU_NAMESPACE, "arg"))
        )
        if option.getAttribute("value") == "-global"
    ]


def _add_arguments(document: Document, *words: str) -> None:
    blocks = document.getElementsByTagNameNS(_QEMU_NAMESPACE, "commandline")
    if blocks:
        block = blocks[0]
    else:
        block = document.createElementNS(_QEMU_NAMESPACE, "qemu:commandline")
        # Declared here rather than at the root, where the prefix may be taken.
        block.setAttribute("xmlns:qemu", _QEMU_NAMESPACE)
        root_of(document).appendChild(block)
    prefix = f"{block.prefix}:" if block.prefix else ""
    for word in words:
        argument = document.createElementNS(_QEMU_NAMESPACE, f"{prefix}arg")
        argument.setAttribute("value", word)
        block.appendChild(argument)


def _parse(xml: str) -> Document:
    """:raise InvalidInput: it is none that libvirt writes."""
    return minidom.parseString(check_xml(xml))  # noqa: S318 - checked before


def _text(document: Document) -> str:
    return str(root_of(document).toxml())
