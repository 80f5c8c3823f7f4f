"""The names that a file of a host has, and all those that a VM names. All calls block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import normpath

from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.host import LocalDaemon

_NAMING = ("file", "dev", "path", "dir")
_OFFLINE = "VIR_DOMAIN_XML_INACTIVE"


@dataclass
class Names:
    """The names of one file: its path, and where files can be told apart, which it is.

    :param daemon: the host's, where it runs on this machine: it tells files apart that have
        several names.
    """

    path: str
    daemon: LocalDaemon | None
    identity: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.identity = self._identity(self.path)

    def _identity(self, path: str) -> str:
        return self.daemon.identity_at(path) if self.daemon is not None else ""

    def has(self, path: str) -> bool:
        """Whether *path* is one of them."""
        if normpath(path) == normpath(self.path):
            return True
        return bool(self.identity) and self._identity(path) == self.identity


def configurations(domain: Domain) -> list[str]:
    """The XML of a VM: of now, and where it runs and is kept, of its next start."""
    later = domain.is_active() and domain.is_persistent()
    return [domain.xml(), *([domain.xml(_OFFLINE)] if later else [])]


def named_by(domain: Domain) -> Iterator[str]:
    """All that a VM names of the host, now and at its next start."""
    for text in configurations(domain):
        for element in parse(text).iter():
            yield from (value for name in _NAMING if (value := element.get(name, "")))
            if (element.text or "").strip().startswith("/"):
                yield (element.text or "").strip()
