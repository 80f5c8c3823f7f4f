"""Releases of libvirt and QEMU that cannot migrate together."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.plan.situation import Situation
from vmtune.model.versions import Version

_WITHOUT_DETACH = Version(11, 1)
"""The first QEMU whose command ``migrate`` has no argument ``detach`` (its removed-features.rst).
It refuses arguments that it does not know."""
_SEEN_TO_SEND_DETACH = Version(11, 3, 0)
"""The newest libvirt that was seen to send it: each migration of a QEMU 11.1 failed with "Parameter
'detach' is unexpected"."""
_SEEN_WITHOUT = "12.8"


def check_releases(situation: Situation) -> Iterator[Finding]:
    """The source's libvirt gives the order to the source's QEMU."""
    libvirt, qemu = situation.host.libvirt, situation.vm.qemu
    if situation.destination is None or libvirt is None:
        return
    if qemu >= _WITHOUT_DETACH and libvirt <= _SEEN_TO_SEND_DETACH:
        words = {"libvirt": str(libvirt), "qemu": str(qemu), "works": _SEEN_WITHOUT}
        yield Finding("libvirt_too_old_for_qemu", evidence=words)
