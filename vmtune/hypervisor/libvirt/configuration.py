"""Changes of a VM's persistent configuration, which others may change at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog

from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_boot_xml
from vmtune.model.plan.changes import Change

log = structlog.get_logger(__name__)

_TRIES = 5
_WHOLE = ("VIR_DOMAIN_XML_INACTIVE", "VIR_DOMAIN_XML_SECURE")


def change_configuration(connection: Connection, vm: UUID, changes: Sequence[Change]) -> None:
    """Set values in it.

    libvirt replaces a configuration as a whole, whatever it has become. So it is read again just
    before: where somebody else has changed it meanwhile (``virsh edit``), the values are set in
    what it is now.

    :raise CommandRefused: a transient VM, a change that has no place in the configuration, one
        that others keep changing, or libvirt's own reason; nothing is changed then.
    """
    domain = connection.domain(vm)
    if not domain.is_persistent():
        raise CommandRefused(
            "the VM is transient: it has no configuration for a next start",
            field=f"values.{changes[0].tunable}",
            code="transient_vm",
            remedy="define it with `virsh define`",
        )
    xml = domain.xml(*_WHOLE)
    for _ in range(_TRIES):
        edited = edit_boot_xml(xml, changes)
        read, xml = xml, domain.xml(*_WHOLE)
        if xml == read:
            connection.define(edited)
            return
        log.warning("the configuration was changed by somebody else meanwhile", vm=str(vm))
    raise CommandRefused(
        "somebody else keeps changing the VM's configuration",
        code="configuration_changed",
        remedy="apply it again when they have ended",
    )
