"""What libvirt found out about emulators, kept between labs: asking one anew takes seconds.

libvirt keeps an answer for itself as long as it fits the emulator, libvirt's own build, the kernel
and the CPU, and checks that whenever it reads one (virQEMUCapsIsValid); a lab that begins with
an old answer is asked the same question and gives the same reply.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from vmtune.lab.host import HostPlan
from vmtune.lab.settings import LabSettings

_WITHIN = Path("cache/qemu/capabilities")


def kept_in(settings: LabSettings, root: Path = Path("/")) -> Path:
    """The folder of the answers of this libvirt: several would replace each other's.

    :param root: of the host.
    """
    daemon = root / str(settings.daemon).lstrip("/")
    which = hashlib.sha256(str(daemon).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vmtune" / "libvirt" / which


def recall(host: HostPlan, settings: LabSettings) -> None:
    """Give a host that is not started yet what earlier ones have found out."""
    with contextlib.suppress(OSError):  # then it asks
        there = host.folder / _WITHIN
        shutil.copytree(kept_in(settings, host.base), there, dirs_exist_ok=True)


def remember(host: HostPlan, settings: LabSettings) -> None:
    """Keep what the host has found out for the next lab."""
    with contextlib.suppress(OSError):  # then the next one asks
        kept = kept_in(settings, host.base)
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        for answer in (host.folder / _WITHIN).glob("*.xml"):
            _copy_whole(answer, kept / answer.name)


def _copy_whole(source: Path, target: Path) -> None:
    """Labs may start at the same time: none may read half an answer."""
    data = source.read_bytes()
    if target.exists() and target.read_bytes() == data:
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
