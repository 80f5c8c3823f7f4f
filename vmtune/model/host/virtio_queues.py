"""The sizes of a VM's virtio queues, as its QEMU has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VirtioQueue:
    """The first queue of a virtio device.

    :param device: its id.
    :param entries: what it has now.
    :param configured_entries: what the device is configured to have, or always has where that
        cannot be configured: QEMU allocates so many for it as it waits for the VM.
    """

    device: str
    entries: int
    configured_entries: int
