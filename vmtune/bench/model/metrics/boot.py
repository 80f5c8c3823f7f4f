"""The metrics of the boot benchmark: rows as :mod:`vmtune.bench.model.metrics.metric` has them.

All times begin just before QEMU's process is started, by the host's clock;
docs/how-to/measure-boot.md says how each mark is found.
"""

from __future__ import annotations

from vmtune.bench.model.metrics.metric import Direction, Group, Metric
from vmtune.units import Unit

_STARTED = "vmtune is about to start QEMU's process"
_GO = "QEMU has set the VM up and lets its vCPUs go (trace event runstate_set: running)"
_LOADING = "the firmware first asks QEMU about the kernel to load (trace event fw_cfg_select)"
_KERNEL = (
    "the first words of the guest's kernel arrive from the serial port: of Linux its version, "
    "once it has unpacked itself"
)
_USER = (
    "the first program of the guest's user space says so on the serial port; the project's "
    "guest: its line that it begins to work"
)
_TO_GUEST = "unless QEMU let the vCPUs go"
_TO_KERNEL = "unless the guest's kernel said something"
_TO_USER = "unless the guest reached user space"
_COUNTED = "where they were not counted, and with TCG, which has none"

BOOT_METRICS = (
    Metric(
        "boot_to_userspace_ms", "Boot to user space", Unit.MS, Direction.LOWER, Group.BOOT,
        "How long the whole boot took. For one that was given up it is longer than "
        "boot_elapsed_ms by an unknown amount.",
        _STARTED, _USER, _TO_USER,
    ),
    Metric(
        "boot_to_kernel_ms", "Boot to the kernel", Unit.MS, Direction.LOWER, Group.BOOT,
        "QEMU's own start, the firmware, and loading and unpacking the kernel.",
        _STARTED, _KERNEL, _TO_KERNEL,
    ),
    Metric(
        "boot_to_guest_ms", "Boot to the first guest instruction", Unit.MS, Direction.LOWER,
        Group.BOOT,
        "QEMU's own start: its process, its memory, its devices.",
        _STARTED, _GO, _TO_GUEST,
    ),
    Metric(
        "boot_firmware_ms", "Time in the firmware", Unit.MS, Direction.LOWER, Group.BOOT,
        "How long the firmware needs until it is ready to load a kernel.",
        _GO, _LOADING, "unless the firmware began to load the kernel",
    ),
    Metric(
        "boot_loading_ms", "Time of loading the kernel", Unit.MS, Direction.LOWER, Group.BOOT,
        "Copying the kernel to where it runs, and its unpacking itself.",
        _LOADING, _KERNEL, _TO_KERNEL,
    ),
    Metric(
        "boot_kernel_ms", "Time in the kernel", Unit.MS, Direction.LOWER, Group.BOOT,
        "boot_to_userspace_ms without boot_to_kernel_ms.",
        _KERNEL, _USER, _TO_USER,
    ),
    Metric(
        "boot_elapsed_ms", "Time until its end", Unit.MS, Direction.LOWER, Group.BOOT,
        "How long the boot was watched, however it ended.",
        _STARTED, "user space is reached, the boot is given up, or QEMU is found dead",
        "when QEMU was never started",
    ),
    Metric(
        "boot_cpu_ms", "CPU time of the boot", Unit.MS, Direction.LOWER, Group.BOOT,
        "User and system time of all threads of QEMU, the guest's own included.",
        _STARTED, "user space is reached or the boot is given up",
        "when QEMU could not be read in /proc",
    ),
    Metric(
        "booted", "Booted", Unit.NONE, Direction.HIGHER, Group.BOOT,
        "1 when the guest reached user space, 0 when it was given up at the scenario's limit or "
        "QEMU died. "
        "Over several runs, the share that booted in time.",
        missing="when a person ended it",
    ),
    Metric(
        "memory_region_updates", "Updates of memory regions", Unit.COUNT, Direction.LOWER,
        Group.BOOT,
        "How often QEMU changed one of KVM's memory regions (trace event kvm_set_user_memory): "
        "each makes the host's kernel wait for an SRCU grace period.",
        _STARTED, "the boot's end", _COUNTED,
    ),
    Metric(
        "memory_region_updates_by_guest", "Updates of memory regions by the guest", Unit.COUNT,
        Direction.LOWER, Group.BOOT,
        "The part of memory_region_updates that firmware and kernel caused, rather than QEMU's "
        "setting up of the VM.",
        _GO, "the boot's end", _COUNTED,
    ),
)  # fmt: skip
"""In the order in which people should read them."""

BOOT_HEADLINE = (
    "boot_to_userspace_ms",
    "boot_to_kernel_ms",
    "boot_to_guest_ms",
    "memory_region_updates",
)
"""The few that a table of runs shows first."""
BOOT_TIME, BOOT_LIMIT, BOOT_SHARE = "boot_to_userspace_ms", "boot_elapsed_ms", "booted"
"""Of a boot that was ended at its limit, the time is right-censored there; the share counts it."""
