"""VMs that arrive by a live migration that vmtune did not start, as libvirt's hook reports them,
and which values of their profile can still be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from vmtune.model.plan.situation import Permissions
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind, Side, Tunable, Value

# Not read by the source of this migration, but this QEMU is the source of the next one, and
# what is set on one does not travel to the other.
_OF_THE_NEXT = ("max_postcopy_bandwidth_bytes_per_s",)


def _has_a_part(row: Tunable) -> bool:
    parameter = row.qmp is not None and row.qmp.kind is QmpKind.PARAMETER
    return parameter and (row.side is Side.DESTINATION or row.name in _OF_THE_NEXT)


_HAVE_A_PART = frozenset(name for name, row in BUILT_IN.items() if _has_a_part(row))
GIVEN_ON_ARRIVAL: Mapping[str, str] = {
    row.name: f"migration.{row.qmp.name}"
    for row in BUILT_IN.values()
    if row.qmp is not None and _has_a_part(row) and row.until is None
}
"""What QEMU can be started with to receive a VM, whatever its version: the property for each.

Each holds alone and in all of its range. QEMU ends at its start at a property that it does not
have, and at values that contradict each other (max-cpu-throttle below its initial throttle; seen
with 7.2 and 10.0), and with it the migration would: so other parameters are not among these. Nor
is anything that both sides must agree on, which libvirt sees to, or that it overwrites."""

OLD_QEMU_ONLY = "not_in_every_qemu"
NOT_ALLOWED = "destination_needs_command_line"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A VM that libvirt is about to take in.

    :param profile: empty where none is assigned.
    :param given: what its QEMU is started with.
    :param withheld: what its profile wants of the destination and does not get, with the code
        of the reason.
    :param migration: the record, where vmtune itself started the migration: it has seen to
        the values already.
    """

    vm: UUID
    vm_name: str
    profile: str = ""
    revision: int = 0
    given: Mapping[str, Value] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    migration: UUID | None = None


def split(
    values: Mapping[str, Value], permissions: Permissions
) -> tuple[dict[str, Value], dict[str, str]]:
    """Of a profile's *values*, those that the VM's QEMU is started with, and those of the
    destination that it is not, each with the code of the reason."""
    given: dict[str, Value] = {}
    withheld: dict[str, str] = {}
    for name, value in values.items():
        if name not in _HAVE_A_PART:
            continue
        if name not in GIVEN_ON_ARRIVAL:
            withheld[name] = OLD_QEMU_ONLY
        elif not permissions.destination_command_line:
            withheld[name] = NOT_ALLOWED
        else:
            given[name] = value
    return given, withheld
