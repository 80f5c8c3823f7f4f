"""The XML that libvirt gives to its hook when a VM is about to arrive."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from vmtune.errors import InvalidInput
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_arriving_xml
from vmtune.model.tunables.tunable import Value

_MAX_NAME = 200


class LibvirtArrivingXml:
    """An :class:`~vmtune.hypervisor.protocol.ArrivingXml` of libvirt's domains."""

    def identify(self, xml: str) -> tuple[UUID, str]:
        """The UUID and the name of the domain that *xml* describes."""
        root = parse(xml)
        name = (root.findtext("name") or "").strip()
        try:
            vm = UUID((root.findtext("uuid") or "").strip())
        except ValueError:
            vm = None
        if root.tag != "domain" or vm is None or not name:
            raise InvalidInput(
                "the XML is not a domain's: it has no UUID, no name, or another element around it",
                field="xml",
                code="no_domain",
                remedy="send the XML that libvirt gives to its hooks",
            )
        return vm, name[:_MAX_NAME]

    def edit(self, xml: str, values: Mapping[str, Value]) -> str | None:
        """*xml* so that the VM's QEMU is started with *values*; None where it is so already."""
        return edit_arriving_xml(xml, values)
