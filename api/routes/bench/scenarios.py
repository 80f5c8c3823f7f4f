"""Scenarios, the metrics of runs, and the QEMUs that can be measured."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import READ
from vmtune.api.responses import problems
from vmtune.api.routes.common import After, Limit, Name, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.scenarios import (
    MeasuredScenarioPage,
    MeasuredScenarioView,
    MetricPage,
    MetricView,
    QemuPage,
    QemuView,
    ScenarioPage,
    ScenarioView,
)
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.run import Testbed
from vmtune.bench.services.campaigns.campaigns import known_scenarios
from vmtune.errors import NotFound
from vmtune.services.computed_pages import part_in_order

router = Router(tags=["scenarios"])
Where = Annotated[Testbed, Query(description="Where the run takes place.")]
Qemu = Annotated[str, Query(description="Name of a QEMU, see GET /qemus.")]
Kvm = Annotated[bool | None, Query(description="Null: use KVM if available.")]


@router.get("/scenarios", responses=problems(), dependencies=[READ])
async def list_scenarios(
    on: Services,
    family: Annotated[
        list[str], Query(description="Families or scenarios; * matches any text. Default: all.")
    ] = [],  # noqa: B006 - FastAPI copies it
    quick: Annotated[bool, Query(description="The quick selection, with small VMs.")] = False,
    kind: Annotated[ScenarioKind | None, Query(description="Only this kind.")] = None,
    testbed: Where = Testbed.DIRECT,
    qemu: Qemu = "",
    kvm: Kvm = None,
    limit: Limit = 200,
    after: After = None,
) -> ScenarioPage:
    """Scenarios, and whether they can run on this machine with that QEMU."""
    found = await on.scenarios.list(tuple(family), quick, testbed, qemu, kvm, kind)
    page = part_in_order(found, "scenarios", lambda one: one.scenario.name, after, limit)
    return ScenarioPage(items=[ScenarioView.of(one) for one in page.items], next=page.next)


@router.get("/scenarios/{family}/{variant}", responses=problems(404), dependencies=[READ])
async def get_scenario(
    on: Services,
    family: Name,
    variant: Name,
    testbed: Where = Testbed.DIRECT,
    qemu: Qemu = "",
    kvm: Kvm = None,
) -> ScenarioView:
    """One predefined scenario in full; with the suffix `.quick`, its small variant."""
    return ScenarioView.of(await on.scenarios.get(f"{family}/{variant}", testbed, qemu, kvm))


@router.get("/measured-scenarios", responses=problems(), dependencies=[EVERYWHERE, READ])
async def list_measured_scenarios(
    on: Services, limit: Limit = 50, after: After = None
) -> MeasuredScenarioPage:
    """Scenarios that have runs: predefined and custom ones."""
    page = await on.runs.scenarios(after, limit)
    known = known_scenarios()
    items = [MeasuredScenarioView.of(each, each.name in known) for each in page.items]
    return MeasuredScenarioPage(items=items, next=page.next)


@router.get("/run-metrics", responses=problems(), dependencies=[READ])
async def list_metrics(limit: Limit = 200, after: After = None) -> MetricPage:
    """The metrics of runs: what each measures, and which direction is better."""
    page = part_in_order(tuple(METRICS.values()), "metrics", lambda row: row.name, after, limit)
    return MetricPage(items=[MetricView.of(row) for row in page.items], next=page.next)


@router.get("/run-metrics/{name}", responses=problems(404), dependencies=[READ])
async def get_metric(name: Name) -> MetricView:
    """One metric."""
    if name not in METRICS:
        raise NotFound(
            f"there is no metric {name[:60]!r}",
            field="name",
            remedy="see GET /run-metrics",
        )
    return MetricView.of(METRICS[name])


@router.get("/qemus", responses=problems(), dependencies=[READ])
async def list_qemus(on: Services, limit: Limit = 200, after: After = None) -> QemuPage:
    """The QEMUs of the settings that runs can use."""
    found = tuple(on.scenarios.qemus)
    page = part_in_order(found, "qemus", lambda qemu: qemu.name, after, limit)
    return QemuPage(items=[QemuView.of(qemu) for qemu in page.items], next=page.next)
