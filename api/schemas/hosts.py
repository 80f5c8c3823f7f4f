"""Hosts: as they were added, and their current state."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, StrictStr

from vmtune.api.schemas.common import Model, Page, ProblemItem
from vmtune.api.schemas.contact import SilenceView
from vmtune.api.schemas.drift import DriftScanView
from vmtune.api.schemas.plans import FindingView
from vmtune.model.host.contact import Contact, HostState
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.model.host.inventory import Host


class HostCreate(Model):
    """A host to add, after a test connection."""

    name: StrictStr = Field(examples=["rack7"])
    uri: StrictStr = Field(
        description="A libvirt URI, or qmp+unix:///FOLDER for a folder of QMP sockets.",
        examples=["qemu:///system", "qmp+unix:///run/qemu"],
    )
    peer_uri: StrictStr = Field(
        default="", description="URI by which other hosts reach its libvirt; empty to derive it."
    )
    migration_address: StrictStr = Field(
        default="",
        description="Address where its QEMUs listen for a migration; without libvirt only.",
    )
    migrate_uri: StrictStr = Field(
        default="",
        description="What a migration to it connects to, unless a profile says so.",
        examples=["tcp://10.0.0.7"],
    )
    listen_address: StrictStr = Field(
        default="", description="Address on which it takes migrations.", examples=["10.0.0.7"]
    )
    disks_uri: StrictStr = Field(
        default="", description="What copies of local disks connect to; with libvirt only."
    )


class HostMaintenance(Model):
    """Whether a host is in maintenance."""

    on: bool = Field(description="A host in maintenance gets no VMs from migrations.")


class HostChange(Model):
    """Addresses of a host's migration network. Null keeps one, an empty text unsets it."""

    migrate_uri: StrictStr | None = Field(default=None, examples=["tcp://10.0.0.7"])
    listen_address: StrictStr | None = Field(default=None, examples=["10.0.0.7"])
    disks_uri: StrictStr | None = None


class HostView(Model):
    """A host."""

    name: str
    uri: str
    peer_uri: str
    migration_address: str
    migrate_uri: str
    listen_address: str
    disks_uri: str
    created_at: datetime
    owner: str = Field(
        description="The service that manages it; empty if none does yet, or for a single service."
    )
    maintenance_since: datetime | None = Field(
        description="Since when it is in maintenance and gets no VMs; null if it is not."
    )
    state: HostState = Field(description="Whether it answers, as of the last contact.")
    unreachable: SilenceView | None = Field(description="Null unless `state` is unreachable.")
    answered_at: datetime | None = Field(
        description="When it answered last; null if not since the service started."
    )
    qemu_version: str | None = Field(description="As of the last contact; null if unknown.")
    libvirt_version: str | None = Field(description="Likewise.")
    kernel: str | None = Field(description="Likewise.")
    cpus: int | None = Field(description="Likewise.")
    memory_bytes: int | None = Field(description="Likewise.")
    memory_available_bytes: int | None = Field(description="Likewise: free, or a cache's.")
    vm_count: int = Field(description="How many VMs were last seen on it.")
    finding_count: int | None = Field(
        description="How many problems host diagnostics found last; null if it did not look yet."
    )

    @classmethod
    def of(cls, host: Host, contact: Contact, vm_count: int) -> HostView:
        """A host, and what was seen of it last."""
        facts = contact.facts
        return cls.from_record(
            host,
            state=contact.state,
            unreachable=SilenceView.of(contact),
            answered_at=contact.answered_at,
            qemu_version=str(facts.qemu) if facts and facts.qemu else None,
            libvirt_version=str(facts.libvirt) if facts and facts.libvirt else None,
            kernel=facts.kernel or None if facts else None,
            cpus=facts.cpus if facts else None,
            memory_bytes=facts.memory_bytes if facts else None,
            memory_available_bytes=facts.memory_available_bytes if facts else None,
            vm_count=vm_count,
            finding_count=contact.findings,
        )


class HostOwner(Model):
    """The service that shall manage a host."""

    service: StrictStr = Field(examples=["node1-vmtune"])


class HostPage(Page[HostView]):
    """Hosts, sorted by name."""


class HostFactsView(Model):
    """Current state of a host. Null means unknown."""

    connection: Connection
    hostname: str
    uuid: str
    qemu_version: str | None
    libvirt_version: str | None
    peer_uri: str
    migration_address: str
    kvm: bool | None
    cpus: int | None
    memory_bytes: int | None
    kernel: str
    sysctls: dict[str, int]
    can_lock_beyond_limits: bool | None
    local: bool

    @classmethod
    def of(cls, facts: HostFacts) -> HostFactsView:
        return cls.from_record(
            facts,
            qemu_version=str(facts.qemu) if facts.qemu else None,
            libvirt_version=str(facts.libvirt) if facts.libvirt else None,
        )


class HostDetail(HostView):
    """A host and its current state, or why it does not answer."""

    facts: HostFactsView | None = Field(description="Null if the host does not answer.")
    problems: list[ProblemItem] = Field(description="Why the host does not answer; else empty.")
    findings: list[FindingView] = Field(description="Problems from host diagnostics.")
    drift: DriftScanView | None = Field(
        description="The last scan of its VMs; null if the caller is restricted to some of them."
    )
