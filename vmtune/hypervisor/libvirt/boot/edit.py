"""Write the settings of :mod:`vmtune.hypervisor.libvirt.boot.settings` into a domain's XML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.dom.minidom import Document, Element
from xml.etree import ElementTree

from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.boot.elements import child, children, remove_if_empty, root_of
from vmtune.hypervisor.libvirt.boot.settings import (
    DRIVER_ATTRIBUTES,
    PAGES,
    Attributes,
    DriverAttribute,
    iothread_numbers,
)
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.cpu_lists import ALL, split_sets
from vmtune.model.tunables.rows.devices import LEFT_TO_QEMU


def edit_setting(document: Document, change: Change) -> None:
    """Make one *change* in a configuration.

    :raise CommandRefused: it has no place in it; with its field.
    """
    row = DRIVER_ATTRIBUTES.get(change.tunable)
    if row is not None:
        _set_driver(document, change, row)
        return
    _PLACES[change.tunable](root_of(document), change)


def check_edited(document: Document, changed: Mapping[str, object]) -> None:
    """:raise CommandRefused: what was written does not make a whole: libvirt would start the VM
    with something else, or refuse in words that name no setting."""
    for memory in _in(root_of(document), "numatune", "memory"):
        incomplete = not memory.getAttribute("nodeset")
        if "numa_mode" in changed and incomplete and memory.getAttribute("placement") != "auto":
            raise CommandRefused(
                "the configuration names no NUMA nodes for numa_mode to act on",
                field="values.numa_mode",
                code="no_such_part",
                remedy="set numa_nodes too",
            )


def _set_driver(document: Document, change: Change, row: DriverAttribute) -> None:
    found = False
    for device in _in(root_of(document), "devices", row.element):
        owner = row.owner(_attributes(device))
        if owner and change.owner in ("", owner):
            found = True
            driver = child(device, "driver")
            if change.value == row.absent and change.value in (0, LEFT_TO_QEMU):
                if driver.hasAttribute(row.attribute):
                    driver.removeAttribute(row.attribute)
                remove_if_empty(driver)
            else:
                driver.setAttribute(row.attribute, str(change.value))
    if not found:
        raise CommandRefused(
            f"the configuration has not {row.part} {change.owner}".rstrip(),
            field=f"values.{change.tunable}",
            code="no_such_part",
        )


def _attributes(element: Element) -> Attributes:
    found = {"": dict(element.attributes.items())}
    for node in element.childNodes:
        if node.nodeType == node.ELEMENT_NODE:
            found.setdefault(node.nodeName, dict(node.attributes.items()))
    return found


def _set_huge_pages(root: Element, change: Change) -> None:
    for pages in _in(root, "memoryBacking", "hugepages"):
        backing = pages.parentNode
        assert isinstance(backing, Element), "found below it"
        backing.removeChild(pages)
        if change.value == "none":
            remove_if_empty(backing)
    if change.value == "none":
        return
    pages = child(child(root, "memoryBacking"), "hugepages")
    if change.value != LEFT_TO_QEMU:
        page = child(pages, "page")
        page.setAttribute("size", str(PAGES[str(change.value)]))
        page.setAttribute("unit", "KiB")


def _set_vcpu_pins(root: Element, change: Change) -> None:
    vcpu = next(children(root, "vcpu"), None)
    text = "".join(n.data for n in vcpu.childNodes if n.nodeType == n.TEXT_NODE) if vcpu else ""
    numbers = list(range(int(text.strip() or 1)))
    _set_pins(root, change, "vcpupin", "vcpu", numbers)


def _set_iothread_pins(root: Element, change: Change) -> None:
    numbers = iothread_numbers(ElementTree.fromstring(root.toxml()))  # noqa: S314 - checked before
    if not numbers:
        raise CommandRefused(
            "the configuration has no iothread",
            field=f"values.{change.tunable}",
            code="no_such_part",
        )
    _set_pins(root, change, "iothreadpin", "iothread", numbers)


def _set_pins(root: Element, change: Change, element: str, number: str, numbers: list[int]) -> None:
    try:
        sets = split_sets(str(change.value), len(numbers))
    except ValueError as error:
        raise CommandRefused(
            f"{change.tunable} {error} {number}s",
            field=f"values.{change.tunable}",
            code="wrong_count",
            remedy=f"give one set for all, or one for each {number}",
        ) from error
    _refuse_all_where_bound(root, change, sets)
    for pin in _in(root, "cputune", element):
        assert pin.parentNode is not None, "found below it"
        pin.parentNode.removeChild(pin)
    for each, cpus in zip(numbers, sets, strict=True):
        if cpus != ALL:
            pin = _added(child(root, "cputune"), element)
            pin.setAttribute(number, str(each))
            pin.setAttribute("cpuset", cpus)
    for tune in children(root, "cputune"):
        remove_if_empty(tune)


def _set_emulator_pin(root: Element, change: Change) -> None:
    _refuse_all_where_bound(root, change, [str(change.value)])
    tune = child(root, "cputune")
    if change.value == ALL:
        for pin in children(tune, "emulatorpin"):
            tune.removeChild(pin)
        remove_if_empty(tune)
    else:
        child(tune, "emulatorpin").setAttribute("cpuset", str(change.value))


def _refuse_all_where_bound(root: Element, change: Change, sets: list[str]) -> None:
    """What has no set of its own is bound by the VM's."""
    for vcpu in children(root, "vcpu"):
        if ALL in sets and vcpu.getAttribute("cpuset"):
            raise CommandRefused(
                f"the configuration binds the whole VM to CPUs {vcpu.getAttribute('cpuset')}",
                field=f"values.{change.tunable}",
                code="bound_as_a_whole",
                remedy="name the CPUs, or remove the cpuset of <vcpu> (virsh edit)",
            )


def _set_numa_nodes(root: Element, change: Change) -> None:
    tune = child(root, "numatune")
    if change.value == ALL:
        for memory in children(tune, "memory"):
            tune.removeChild(memory)
        remove_if_empty(tune)
        return
    memory = child(tune, "memory")
    if memory.hasAttribute("placement"):
        memory.removeAttribute("placement")
    memory.setAttribute("nodeset", str(change.value))


def _set_numa_mode(root: Element, change: Change) -> None:
    child(child(root, "numatune"), "memory").setAttribute("mode", str(change.value))


_PLACES: Mapping[str, Callable[[Element, Change], None]] = {
    "huge_pages": _set_huge_pages,
    "vcpu_cpus": _set_vcpu_pins,
    "emulator_cpus": _set_emulator_pin,
    "iothread_cpus": _set_iothread_pins,
    "numa_nodes": _set_numa_nodes,
    "numa_mode": _set_numa_mode,
}
SETTINGS = frozenset({*_PLACES, *DRIVER_ATTRIBUTES})
"""The tunables that are written here."""


def _in(root: Element, outer: str, inner: str) -> list[Element]:
    return [each for part in children(root, outer) for each in children(part, inner)]


def _added(parent: Element, name: str) -> Element:
    document = parent.ownerDocument
    assert document is not None, "an element of a parsed document has one"
    made = document.createElement(name)
    parent.appendChild(made)
    return made
