"""The preflight of zero-copy: memory that may be locked, and memory for notifications.

Sources of the rules: QEMU migration/options.c (migrate_caps_check) and io/channel-socket.c, kernel
msg_zerocopy.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.tunable import Tunable, Value
from vmtune.model.versions import Version

# Seen to fail below and to work from it, with 4 channels: 4,096 failed, 20,480 worked.
LEAST_OPTMEM_BYTES = 20480
GOOD_OPTMEM_BYTES = 131072
# A notification takes some 5 KiB of it (20,480 bytes were enough for 4 channels).
OPTMEM_PER_CHANNEL_BYTES = 5120
_WAITS_FOR_OPTMEM = Version(10, 2)
"""From here on QEMU flushes and tries again once where it is exhausted (io/channel-socket.c)."""


def check_zero_copy(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Lockable memory and socket option memory, without either of which zero-copy fails."""
    if tunable.name != "zero_copy_send" or wanted is not True:
        return
    vm = situation.vm
    limit = vm.locked_memory_limit_bytes
    # libvirt requests all guest memory, and raises the limit itself where it may.
    if situation.libvirt:
        short = limit is not None and limit < vm.memory_bytes
        if short and situation.host.can_lock_beyond_limits is False:
            yield _locked(tunable, vm.memory_bytes, limit)
    elif vm.may_lock_memory is False and limit is not None and limit < vm.memory_bytes:
        yield _locked(tunable, vm.memory_bytes, limit)
    yield from _shared(tunable, situation)
    optmem = situation.host.sysctls.get("net_core_optmem_max_bytes")
    channels = situation.number("multifd_channels") or 2
    if optmem is None:
        return
    if vm.qemu >= _WAITS_FOR_OPTMEM and optmem >= OPTMEM_PER_CHANNEL_BYTES:
        if optmem < max(LEAST_OPTMEM_BYTES, channels * OPTMEM_PER_CHANNEL_BYTES):
            yield Finding(
                "optmem_slows",
                tunable.name,
                {"value": optmem, "channels": channels, "wanted": GOOD_OPTMEM_BYTES},
            )
    elif optmem < LEAST_OPTMEM_BYTES:
        yield Finding(
            "optmem_too_low",
            tunable.name,
            {"value": optmem, "least": LEAST_OPTMEM_BYTES, "wanted": GOOD_OPTMEM_BYTES},
        )
    elif optmem < channels * OPTMEM_PER_CHANNEL_BYTES:
        most = max(GOOD_OPTMEM_BYTES, channels * OPTMEM_PER_CHANNEL_BYTES)
        yield Finding(
            "optmem_low",
            tunable.name,
            {"value": optmem, "channels": channels, "wanted": most},
        )


def _shared(tunable: Tunable, situation: Situation) -> Iterator[Finding]:
    """The kernel counts what zero-copy locks for the user: other QEMUs of his share the limit."""
    vm, others = situation.vm, situation.vm.pinned_by_others_bytes
    limit = vm.locked_memory_limit_bytes
    if not others or limit is None or vm.may_lock_memory:
        return
    if situation.libvirt and situation.host.can_lock_beyond_limits is not False:
        limit = max(limit, vm.memory_bytes)  # to which libvirt raises it
    if limit < vm.memory_bytes or limit >= vm.memory_bytes + others:
        return  # too low by itself is another finding
    yield Finding(
        "locked_memory_shared",
        tunable.name,
        {
            "others_bytes": others,
            "limit_bytes": limit,
            "memory_bytes": vm.memory_bytes,
            "wanted": vm.memory_bytes + others,
        },
    )


def _locked(tunable: Tunable, needed: int, limit: int | None) -> Finding:
    return Finding(
        "locked_memory_too_low", tunable.name, {"needed_bytes": needed, "limit_bytes": limit or 0}
    )
