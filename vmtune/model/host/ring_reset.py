"""Whether a kernel hands back a dirty ring in part, which kills a QEMU that asserts the whole.

"KVM: Bail from the dirty ring reset flow if a signal is pending" (2025, merged for Linux 6.16).
"""

from __future__ import annotations

from vmtune.model.doctor.kernel import KernelVersion

FIRST_KERNEL = (6, 16)
"""The first release that ends KVM_RESET_DIRTY_RINGS early."""


def resets_end_early(asked: bool | None, release: str) -> bool | None:
    """What the kernel itself showed; where it could not be asked, what its version says.

    :param asked: None where it could not be asked.
    :param release: ``uname -r``; empty where it is unknown.
    :return: None where nothing is known.

    >>> resets_end_early(None, "6.16.0-rc3"), resets_end_early(None, "6.12.9-amd64")
    (True, False)
    >>> resets_end_early(False, "6.18.0")
    False
    """
    if asked is not None:
        return asked
    version = KernelVersion.parse(release)
    return None if version is None else (version.major, version.minor) >= FIRST_KERNEL
