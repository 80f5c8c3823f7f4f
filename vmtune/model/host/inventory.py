"""Hosts and VMs as vmtune remembers them, apart from what is probed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from vmtune.model.host.facts import Connection


@dataclass(frozen=True, slots=True)
class Host:
    """A libvirt connection, or a folder of QMP sockets.

    :param uri: a libvirt URI (``qemu:///system``, ``qemu+ssh://root@a/system``), or
        ``qmp+unix:///FOLDER``: each socket in it is one QEMU's monitor.
    :param peer_uri: how other hosts reach its libvirt; empty to derive it from *uri*.
    :param migration_address: where its QEMUs listen for a migration in direct mode.
    :param owner: the service that manages it; empty if none does yet, or one service manages all.
    :param machine: the machine that *uri* means, where it names none; empty if it names one, or one
        service manages all.
    :param migrate_uri: what a migration to it connects to, unless a profile says so; likewise
        *listen_address* and *disks_uri*, as the tunables of these names.
    :param maintenance_since: since when it is in maintenance and is to get no VMs; None if it is
        not.
    """

    name: str
    uri: str
    peer_uri: str
    migration_address: str
    created_at: datetime
    owner: str = ""
    machine: str = ""
    migrate_uri: str = ""
    listen_address: str = ""
    disks_uri: str = ""
    maintenance_since: datetime | None = None

    @property
    def connection(self) -> Connection:
        """How its QEMUs are reached, which the URI's scheme says."""
        return Connection.QMP if self.uri.startswith("qmp+") else Connection.LIBVIRT

    def on_network(self, addresses: Mapping[str, str]) -> Host:
        """This host with addresses of its migration network, by name; others stay."""
        return replace(
            self,
            migrate_uri=addresses.get("migrate_uri", self.migrate_uri),
            listen_address=addresses.get("listen_address", self.listen_address),
            disks_uri=addresses.get("disks_uri", self.disks_uri),
        )

    @property
    def names_no_machine(self) -> bool:
        """Whether its address means another host on another machine (``qemu:///system``)."""
        return not urlsplit(self.uri).hostname


@dataclass(frozen=True, slots=True)
class Vm:
    """A VM that was seen on a host, with the operator's labels."""

    uuid: UUID
    name: str
    host: str
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_at: datetime | None = None


class VmSort(StrEnum):
    """The order of a list of VMs; those that are equal in it go by name, ``-`` is for backwards.
    By tuning state the worst come first."""

    NAME = "name"
    NAME_BACKWARDS = "-name"
    HOST = "host"
    HOST_BACKWARDS = "-host"
    TUNING = "tuning_state"
    TUNING_BACKWARDS = "-tuning_state"

    @property
    def backwards(self) -> bool:
        """Whether it is the order of :attr:`by`, backwards."""
        return self.value.startswith("-")

    @property
    def by(self) -> VmSort:
        """The same order forwards."""
        return VmSort(self.value.removeprefix("-"))


class HostSort(StrEnum):
    """The order of a list of hosts; those that are equal in it go by name, ``-`` is for backwards.
    What is not known comes before the smallest."""

    NAME = "name"
    NAME_BACKWARDS = "-name"
    STATE = "state"
    STATE_BACKWARDS = "-state"
    VMS = "vms"
    VMS_BACKWARDS = "-vms"
    MEMORY = "memory_available"
    MEMORY_BACKWARDS = "-memory_available"
    FINDINGS = "findings"
    FINDINGS_BACKWARDS = "-findings"
    ANSWERED = "answered"
    ANSWERED_BACKWARDS = "-answered"

    @property
    def backwards(self) -> bool:
        """Whether it is the order of :attr:`by`, backwards."""
        return self.value.startswith("-")

    @property
    def by(self) -> HostSort:
        """The same order forwards."""
        return HostSort(self.value.removeprefix("-"))


class EventTopic(StrEnum):
    """What an event is about."""

    HOST = "host"
    VM = "vm"
    PROFILE = "profile"
    ASSIGNMENT = "assignment"
    APPLICATION = "application"
    MIGRATION = "migration"
    ARRIVAL = "arrival"
    RUN = "run"
    CAMPAIGN = "campaign"
    STUDY = "study"
    EVACUATION = "evacuation"


@dataclass(frozen=True, slots=True)
class Event:
    """A change, sent to the subscribers of the event stream.

    :param id: grows by one or more from event to event; a stream resumes after it.
    :param subject: the UUID or name of what changed.
    :param data: what changed, ready for JSON.
    """

    id: int
    at: datetime
    topic: EventTopic
    subject: str
    data: Mapping[str, object]
