"""The services that share the work."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.model.cluster import Service, ServiceState


class ServiceView(Model):
    """A service on this database."""

    name: str
    machine: str
    version: str
    state: ServiceState
    here: bool = Field(description="It is the service that answers.")
    hosts: list[str] = Field(description="The hosts that it manages.")
    started_at: datetime
    seen_at: datetime = Field(description="Time of its last heartbeat, by its own clock.")

    @classmethod
    def of(cls, service: Service, here: str, hosts: list[str]) -> ServiceView:
        return cls.from_record(service, here=service.name == here, hosts=hosts)


class ServiceList(Model):
    """The services, sorted by name; empty for a single service."""

    items: list[ServiceView]
