"""The calls of libvirt about one storage pool."""

from __future__ import annotations

from typing import Any

from vmtune.hypervisor.libvirt.calls.base import Calls


class Pool:
    """A storage pool. Every method may raise what a domain's do."""

    def __init__(self, connection: Calls, raw: Any) -> None:  # any: libvirt has no types
        self._raw = raw
        self._errors = connection.errors

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._raw.name())

    def look(self) -> tuple[frozenset[str], int]:
        """The names in it right now, and the bytes that are free."""
        with self._errors():
            self._raw.refresh(0)
            return frozenset(self._raw.listVolumes()), int(self._raw.info()[3])

    def xml(self) -> str:
        """Its XML."""
        with self._errors():
            return str(self._raw.XMLDesc(0))

    def volume_xml(self, name: str) -> str:
        """The XML of a volume in it."""
        with self._errors():
            return str(self._raw.storageVolLookupByName(name).XMLDesc(0))

    def create(self, xml: str) -> None:
        """Create a file in it, which must not exist."""
        with self._errors():
            self._raw.createXML(xml, 0)

    def delete(self, name: str) -> None:
        """Delete a file in it."""
        with self._errors():
            self._raw.storageVolLookupByName(name).delete(0)

    def deactivate(self) -> None:
        """Let libvirt forget it, if nobody has defined it. Its files stay."""
        with self._errors():
            self._raw.destroy()
