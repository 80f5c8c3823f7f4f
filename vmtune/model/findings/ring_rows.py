"""Rows of the table of findings about dirty rings that can end the guest.

Since Linux 6.16 the kernel empties a ring only in part when a signal is pending, and QEMU aborts
when it does: a guest can die in the first second of a migration, as soon as a ring fills.
"""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker, warning

_CAN_DIE = (
    "the kernel of {host} empties a dirty ring only in part when a signal is pending, and QEMU "
    "{version} aborts then"
)
_BITMAP = "set dirty_ring_size_entries to 0 and restart the VM (bitmap tracking)"

RING_ROWS = (
    blocker(
        "ring_without_reaper",
        f"{_CAN_DIE}: nothing empties this VM's rings of {{entries}} entries before they fill, so "
        "the guest can die in the first second of a migration",
        f"set reaper_policy to predict, with rings of 65536 entries; or {_BITMAP}",
    ),
    blocker(
        "ring_fills_between_rounds",
        f"{_CAN_DIE}: a ring of {{entries}} entries is full after {{interval}}, before the reaper "
        "comes again, where a vCPU dirties {rate}",
        f"set dirty_ring_size_entries to 65536 and restart the VM; or {_BITMAP}",
    ),
    warning(
        "ring_must_not_fill",
        f"{_CAN_DIE}: the guest lives as long as the reaper empties its rings before they fill",
        f"{_BITMAP} where that is not worth the risk",
    ),
    warning(
        "running_ring_unsafe",
        f"{_CAN_DIE}: this VM runs with rings of {{entries}} entries, and can die when it is "
        "migrated, or its dirty rate measured, as soon as a ring fills",
        f"{_BITMAP}; until then migrate it only with reaper_policy set",
    ),
    warning(
        "destination_ring_unsafe",
        f"{_CAN_DIE}: there the VM can die at its next migration as soon as a ring fills",
        f"{_BITMAP} before it migrates; or choose another destination",
    ),
    warning(
        "ring_reset_unknown",
        "vmtune cannot see the kernel of {host}: where it is Linux 6.16 or later, a VM with a "
        "dirty ring can die when it is migrated, or its dirty rate measured, as soon as a ring "
        "fills",
        f"run vmtune doctor on {{host}}, or uname -r; on such a kernel {_BITMAP}",
    ),
)
