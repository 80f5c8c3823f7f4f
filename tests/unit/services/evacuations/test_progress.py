"""What an evacuation says of itself while it runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from vmtune.model.evacuation.evacuation import EvacuationVm, EvacuationVmState
from vmtune.services.evacuations.progress import Progress

GOES, WAITS, GONE = (UUID(int=number) for number in (1, 2, 3))
GUIDE = Path(__file__).parents[4] / "docs/how-to/evacuate.md"
RECORD = SimpleNamespace(id=UUID(int=9), host="a", created_at=datetime.now(UTC))


def published() -> dict[str, Any]:
    told: list[dict[str, Any]] = []
    bus = SimpleNamespace(progress=lambda _topic, _id, data: told.append(data))
    vms = [
        EvacuationVm(vm, vm.hex, 100, 0, EvacuationVmState.REQUESTED, migration=vm)
        for vm in (GOES, WAITS, GONE)
    ]
    progress = Progress(cast(Any, bus), cast(Any, RECORD), vms)
    progress.publish({GOES: 0.5, WAITS: 0.0})
    (data,) = told
    return data


def test_the_guide_names_the_fields() -> None:
    text = GUIDE.read_text()
    (told,) = re.findall(r"While it runs, progress is sent(.*?)\n\n", f"{text}\n", re.DOTALL)
    data = published()
    assert set(re.findall(r"`(\w+)`", told)) == data.keys() | {"null"}
    assert data["remaining_s"] is None


def test_of_a_vm_that_waits_for_its_turn_no_share_is_told() -> None:
    data = published()
    assert data["vms"] == {str(GOES): 0.5}
    assert data["share"] == 0.1667
