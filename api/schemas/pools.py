"""Coroutine pools, memory maps, and the limits of the host."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, RawValue
from vmtune.api.schemas.plans import FindingView
from vmtune.model.host.pools import Design, Level
from vmtune.services.hosts.pools import PoolReport


class PoolView(Model):
    """A VM's computed coroutine pool and its current memory maps."""

    uuid: UUID
    name: str
    host: str
    qemu_version: str
    design: Design = Field(description="Design of the coroutine pool in this QEMU.")
    threads: int = Field(description="Threads that run coroutines: the main loop and iothreads.")
    guest_requests: int = Field(description="Capacity of its disks' queues in requests.")
    soft_limit: int = Field(description="Size to which QEMU lets the pool grow, in coroutines.")
    max_pooled: int = Field(description="Maximum of pooled coroutines without requests in flight.")
    max_coroutines: int = Field(description="Coroutines in use and pooled, in the worst case.")
    max_maps: int = Field(description="Memory maps in the worst case.")
    maps: int | None = Field(description="Current memory maps; null if unknown.")
    stacks: int | None = Field(description="Current coroutine stacks; each takes two maps.")
    stacks_per_coroutine: int = Field(description="Two in a QEMU built with SafeStack, else one.")
    stack_bytes: int | None = Field(
        description="Memory of each stack now, on average; null if there is none or it is unknown."
    )
    max_stack_bytes: int | None = Field(
        description="Memory of all stacks in the worst case; null likewise."
    )
    other_maps: int = Field(description="Maps without the coroutines, or an estimate of them.")
    limit: int | None = Field(description="vm.max_map_count; null if unknown.")
    left: int | None = Field(
        description="Remaining maps in the worst case; below 0 QEMU can abort."
    )
    left_now: int | None = Field(description="Remaining maps now.")
    needed_limit: int = Field(description="vm.max_map_count without a warning.")
    level: Level
    findings: list[FindingView]

    @classmethod
    def of(cls, report: PoolReport) -> PoolView:
        found, vm = report.headroom, report.vm
        model = found.model
        return cls.from_record(
            found,
            uuid=vm.uuid,
            name=vm.name,
            host=report.host,
            qemu_version=str(vm.qemu),
            design=model.design,
            threads=model.threads,
            guest_requests=model.requests,
            soft_limit=model.soft_limit,
            max_pooled=model.max_pooled,
            max_coroutines=model.most,
            maps=found.maps.total if found.maps else None,
            stacks=found.maps.stacks if found.maps else None,
            stacks_per_coroutine=model.stacks,
            findings=[FindingView.from_record(finding) for finding in report.findings],
        )


class PoolList(Model):
    """The pools of a host's running VMs, closest to the limit first."""

    items: list[PoolView]


class LimitView(Model):
    """A limit of the host."""

    tunable: str
    sysctl: str
    value: int | None = Field(description="Current value.")
    before: int | None = Field(
        description="Original value, restored without requests; null if unchanged."
    )
    claims: dict[str, int] = Field(description="Requested values by requester; the highest is set.")
    held: str = Field(description="Why it is above the requested values; empty if it is not.")


class LimitList(Model):
    """The limits of a host that vmtune can raise."""

    items: list[LimitView]


class LimitsSet(Model):
    """Limits to raise until they are restored. Others stay unchanged."""

    values: dict[str, RawValue] = Field(
        min_length=1, max_length=16, examples=[{"vm_max_map_count": 262144}]
    )
