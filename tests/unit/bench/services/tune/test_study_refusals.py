"""Studies that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.benchmarks.studies import study_json
from tests.unit.bench.services.tune.study_service import Bench
from vmtune.errors import Blocked, InvalidInput, NotFound, VmtuneError

TARGET = {"vm": "00000000-0000-4000-8000-00000000000a"}


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({}, "carries_work"),
        ({"carries_work": True, "spare": [TARGET["vm"]]}, "spared"),
        ({"carries_work": True}, "not_settable"),
    ],
)
async def test_a_running_vm_is_left_alone(
    bench: Bench, limits: dict[str, object], code: str
) -> None:
    cell = {
        "node": "null-co",
        "rw": "randread",
        "block_size_bytes": 4096,
        "iodepth": 1,
        "numjobs": 1,
    }
    scenario = {"kind": "block", "name": "mine/live", "cell": cell, "target": TARGET}
    order = study_json(
        scenario=scenario, objective="maximise iops", space="auto", kvm=None, limits=limits
    )
    with pytest.raises((Blocked, InvalidInput)) as refused:
        await bench.studies.start(order)
    assert [each.code for each in refused.value.problems] == [code]
    assert bench.store.studies.list().items == ()


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"profile": "none"}, NotFound, "profile"),
        ({"objective": "minimise nothing"}, InvalidInput, "objective"),
        ({"budget": {"runs": 5}}, InvalidInput, "budget.runs"),
        ({"scenario": "none/such"}, InvalidInput, "scenario"),
        ({"qemu": "none"}, InvalidInput, "qemu"),
    ],
)
async def test_what_is_wrong_is_named_and_changes_nothing(
    bench: Bench, changes: dict[str, Any], error: type[VmtuneError], field: str
) -> None:
    with pytest.raises(error) as refused:
        await bench.studies.start(study_json(**changes))
    assert field in {each.field for each in refused.value.problems}
    assert bench.store.studies.list().items == ()
