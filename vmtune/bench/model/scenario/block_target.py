"""A VM that runs, as what the block benchmark measures. Pure.

It is measured as it is: nothing is set, and nothing is written but to a null node that is made for
the measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from annotated_types import MaxLen

from vmtune.bench.model.scenario.matrix_cells import BlockCell, NodeKind
from vmtune.documents.dataclass_json import Written
from vmtune.documents.strict import Reader, short
from vmtune.errors import Problem

VM_NAME, VM_HOST = "vm_name", "vm_host"
"""The key in a run's options for the host of its VM, besides its scenario's target."""
MAX_NAME = 255
"""Characters of a node's name, or of a disk's path in the guest."""


def _vm(reader: Reader, raw: object, where: str) -> UUID | None:
    try:
        return UUID(str(raw))
    except ValueError:
        reader.refuse(where, "invalid_value", f"{short(raw)} is not a UUID of a VM",
                      "`vmtune vm list` shows them")  # fmt: skip
        return None


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """A VM, and the part of it to load.

    :param node: a block node of its QEMU, which is exported read-only.
    :param device: a disk as its guest calls it (``/dev/vdb``), which fio reads in the guest.
        Without either, a null node is made in its QEMU, exported, and removed again.
    """

    vm: Annotated[UUID, Written(_vm)]
    node: Annotated[str, MaxLen(MAX_NAME)] = ""
    device: Annotated[str, MaxLen(MAX_NAME)] = ""

    @property
    def own(self) -> bool:
        """What is loaded is the VM's, and not a node that is made for it."""
        return bool(self.node or self.device)


def to_json(target: LiveTarget) -> dict[str, Any]:  # any JSON
    """All of *target*, without what is empty."""
    parts = {"node": target.node, "device": target.device}
    return {"vm": str(target.vm), **{name: text for name, text in parts.items() if text}}


def problems_of(
    target: LiveTarget | None, cell: BlockCell, values: Mapping[str, object]
) -> Iterator[Problem]:
    """What a scenario with this *target* cannot have."""
    if target is None:
        if cell.node is NodeKind.VM:
            yield Problem("target", "missing", "the VM of the node is missing",
                          "give target with vm and node, or use null-co, raw or qcow2")  # fmt: skip
        return
    if values:
        yield Problem("values", "not_settable", "a running VM is measured as it is",
                      "apply a profile with these values to it first")  # fmt: skip
    if target.node and target.device:
        yield Problem("target", "one_of", "a node is exported by QEMU, and a device read in the "
                      "guest: it cannot be both", "leave one of them out")  # fmt: skip
    if target.device and not target.device.startswith("/"):
        yield Problem("target.device", "invalid_value",
                      f"{short(target.device)} is not a path in the guest",
                      "write it like /dev/vdb")  # fmt: skip
    if target.own and cell.node is not NodeKind.VM:
        yield Problem("cell.node", "not_a_choice",
                      f"what is loaded is the VM's own, and no {cell.node} node",
                      "leave it out, or use vm")  # fmt: skip
    if target.own and cell.rw.writes:
        yield Problem("cell.rw", "read_only", f"{cell.rw} would write to what the VM is on",
                      "use read or randread; what is written to is a null node alone, which is "
                      "made where no node is named")  # fmt: skip
    if not target.own and cell.node is not NodeKind.NULL:
        yield Problem("cell.node", "needs_node", f"no {cell.node} node is made in a running VM",
                      "name a node of the VM, or use null-co")  # fmt: skip


def vm_of_setup(setup: Mapping[str, object]) -> UUID | None:
    """The VM that a run has to itself, from its scenario's JSON as a run keeps it; None where it
    has none."""
    target = setup.get("target")
    try:
        return UUID(str(target["vm"])) if isinstance(target, Mapping) else None
    except (KeyError, ValueError):
        return None
