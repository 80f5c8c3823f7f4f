"""Host diagnostics without a service: examines this machine, for the client, which has no
drivers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vmtune.api.schemas.doctor import DiagnosisView, SrcuCostView
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.hypervisor.linux.srcu import config_hz, measure_srcu
from vmtune.model.doctor.rules import diagnose


def diagnose_here(srcu: bool = False) -> dict[str, Any]:  # any JSON: a DiagnosisView
    """This machine's diagnostics, as the API returns them.

    :param srcu: time updates of a VM's memory map as well; ``srcu`` then has a SrcuCostView.
    :raise SetupError: they cannot be timed here.
    """
    seen = examine()
    if not srcu:
        return DiagnosisView.of(diagnose(seen.hostname, seen)).model_dump(mode="json")
    seen = replace(seen, srcu_cost=(cost := measure_srcu()))
    diagnosis = DiagnosisView.of(diagnose(seen.hostname, seen)).model_dump(mode="json")
    view = SrcuCostView.of(cost, seen.srcu, config_hz())
    return {**diagnosis, "srcu": view.model_dump(mode="json")}
