"""Coroutine pools, memory maps, and the limits of the host."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, RawValue
from vmtune.api.schemas.plans import FindingView
from vmtune.model.host.pools import Design, Level
from vmtune.services.hosts.limits import LimitState
from vmtune.services.hosts.pools import PoolReport


class PoolView(Model):
    """A VM's coroutine pool: computed, and its memory maps as they are right now."""

    uuid: UUID
    name: str
    host: str
    qemu_version: str
    design: Design = Field(description="How this QEMU keeps the stacks of ended coroutines.")
    threads: int = Field(description="Threads that run coroutines: the main loop and iothreads.")
    guest_requests: int = Field(description="The most requests that its disks' queues hold.")
    soft_limit: int = Field(description="Coroutines that QEMU lets the pool grow to.")
    most_pooled: int = Field(description="Coroutines kept when nothing is in flight, at most.")
    most_coroutines: int = Field(description="In use and kept, in the worst case.")
    most_maps: int = Field(description="Memory maps in the worst case.")
    maps: int | None = Field(description="Memory maps right now; null where they are not seen.")
    stacks: int | None = Field(description="Stacks of coroutines now; each takes two maps.")
    other_maps: int = Field(description="Maps that are no coroutine's, or an estimate of them.")
    limit: int | None = Field(description="vm.max_map_count; null where it is not seen.")
    left: int | None = Field(description="Maps left in the worst case; below 0 QEMU can end.")
    left_now: int | None = Field(description="Maps left right now.")
    needed_limit: int = Field(description="vm.max_map_count with which nothing warns.")
    level: Level
    findings: list[FindingView]

    @classmethod
    def of(cls, report: PoolReport) -> PoolView:
        found, vm = report.headroom, report.vm
        model = found.model
        return cls(
            uuid=vm.uuid,
            name=vm.name,
            host=report.host,
            qemu_version=str(vm.qemu),
            design=model.design,
            threads=model.threads,
            guest_requests=model.requests,
            soft_limit=model.soft_limit,
            most_pooled=model.most_pooled,
            most_coroutines=model.most,
            most_maps=found.most_maps,
            maps=found.maps.total if found.maps else None,
            stacks=found.maps.stacks if found.maps else None,
            other_maps=found.other_maps,
            limit=found.limit,
            left=found.left,
            left_now=found.left_now,
            needed_limit=found.needed_limit,
            level=found.level,
            findings=[FindingView.of(finding) for finding in report.findings],
        )


class PoolList(Model):
    """The pools of a host's running VMs, the nearest to the limit first."""

    items: list[PoolView]


class LimitView(Model):
    """A limit of the host."""

    tunable: str
    sysctl: str
    value: int | None = Field(description="What it is right now.")
    before: int | None = Field(
        description="What comes back when nobody asks any more; null where nothing was changed."
    )
    claims: dict[str, int] = Field(description="Who asks for how much; the most holds.")
    held: str = Field(description="Why it is above what is asked for; empty where it is not.")

    @classmethod
    def of(cls, state: LimitState) -> LimitView:
        return cls(
            tunable=state.tunable,
            sysctl=state.sysctl,
            value=state.value,
            before=state.before,
            claims=dict(state.claims),
            held=state.held,
        )


class LimitList(Model):
    """The limits of a host that vmtune may raise."""

    items: list[LimitView]


class LimitsSet(Model):
    """Limits to raise, until they are restored. Those that are not named stay."""

    values: dict[str, RawValue] = Field(
        min_length=1, max_length=16, examples=[{"vm_max_map_count": 262144}]
    )
