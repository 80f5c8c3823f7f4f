"""A run's VM on the lab's two libvirt hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from vmtune.bench.order import LibvirtPlace
from vmtune.bench.stage import Stage
from vmtune.domain.scenario import Scenario


@asynccontextmanager
async def libvirt_stage(place: LibvirtPlace, scenario: Scenario, kvm: bool) -> AsyncIterator[Stage]:
    """A fresh domain, and nothing left of it afterwards."""
    raise NotImplementedError
    yield
