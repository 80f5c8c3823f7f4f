"""QEMU's and libvirt's names of tunables, written short for the rows."""

from __future__ import annotations

from vmtune.model.tunables.tunable import LibvirtKind, LibvirtName, QmpKind, QmpName
from vmtune.model.versions import Version

LIBVIRT_RESETS = "libvirt, at every migration"
MIB = 1 << 20
MAX_INT64 = (1 << 63) - 1
MAX_INT = (1 << 31) - 1


def capability(name: str) -> QmpName:
    """A migration capability of QEMU."""
    return QmpName(QmpKind.CAPABILITY, name)


def parameter(name: str) -> QmpName:
    """A migration parameter of QEMU."""
    return QmpName(QmpKind.PARAMETER, name)


def flag(name: str, virsh: str, since: Version = Version(9)) -> LibvirtName:
    """A flag of libvirt's migration."""
    return LibvirtName(LibvirtKind.FLAG, name, virsh, since)


def libvirt_parameter(
    name: str, virsh: str, since: Version = Version(9), scale: int = 1
) -> LibvirtName:
    """A typed parameter of libvirt's migration."""
    return LibvirtName(LibvirtKind.PARAMETER, name, virsh, since, scale)


def iothread_call(name: str) -> LibvirtName:
    """A parameter of libvirt's call for iothreads."""
    return LibvirtName(LibvirtKind.CALL, name, f"iothreadset --{name.replace('_', '-')}")
