"""Begins to steer a migration, or continues: what the policy starts from."""

from __future__ import annotations

from vmtune.errors import VmtuneError
from vmtune.hypervisor.protocol import Controls
from vmtune.intent.bounds import QEMU_LIMIT_MS
from vmtune.intent.choosing import HELD_PERCENT
from vmtune.intent.steering import Abilities, Steering
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import MAX_SLOWDOWN_PERCENT
from vmtune.model.migration.record import Migration
from vmtune.model.migration.stated_intent import relaxed
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.tunable import Value

_LIMIT, _THROTTLE = "downtime_limit_ms", "max_cpu_throttle_percent"


async def begin_steering(record: Migration, controls: Controls) -> Steering | None:
    """The state to steer *record*'s migration from: by what QEMU says is set, since an earlier
    process may have steered already. None without an intent."""
    stated = record.intent
    if stated is None:
        return None
    rejected = {o.tunable for o in record.outcomes if o.status is Status.REJECTED}
    wanted: dict[str, Value] = {n: v for n, v in record.wanted.items() if n not in rejected}
    try:
        readings = await controls.read(record.vm, [_LIMIT, _THROTTLE])
        seen = {name: reading.value for name, reading in readings.items()}
    except VmtuneError:
        seen = {}
    limit = _number(seen.get(_LIMIT), _number(wanted.get(_LIMIT), QEMU_LIMIT_MS))
    chosen = frozenset(stated.chosen) if stated.shadow else frozenset[str]()
    throttled = wanted.get("auto_converge") is True or "auto_converge" in chosen
    own = throttled and "auto_converge" in stated.chosen and _THROTTLE not in wanted
    percent = _number(seen.get(_THROTTLE), MAX_SLOWDOWN_PERCENT) if own else 0
    # Until steering has set it, it is the most that QEMU may throttle, and does not by itself.
    held = any(_sets_throttle(step) for step in record.step_records)
    return Steering(
        stated.intent,
        Abilities(
            own,
            wanted.get("postcopy") is True or "postcopy" in chosen,
            _LIMIT not in stated.pinned,
        ),
        max(1, limit),
        percent if held and percent > HELD_PERCENT else 0,
        relaxed(record.step_records),
        held=held,
        done=any(record.did(action) for action in StepAction),
        curve=stated.curve,
    )


def _sets_throttle(step: StepRecord) -> bool:
    by_steering = step.number is None and step.action.startswith("set ")
    return by_steering and step.effect is not StepEffect.REFUSED and _THROTTLE in step.action


def _number(value: Value | None, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
