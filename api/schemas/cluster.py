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
    here: bool = Field(description="It is the one that answers.")
    hosts: list[str] = Field(description="The hosts that it drives.")
    started_at: datetime
    seen_at: datetime = Field(description="When it last said that it lives, by its own clock.")

    @classmethod
    def of(cls, service: Service, here: str, hosts: list[str]) -> ServiceView:
        return cls(
            name=service.name,
            machine=service.machine,
            version=service.version,
            state=service.state,
            here=service.name == here,
            hosts=hosts,
            started_at=service.started_at,
            seen_at=service.seen_at,
        )


class ServiceList(Model):
    """The services, by name; none where one service drives every host."""

    items: list[ServiceView]
