"""Begins to steer a migration, or continues: what the policy starts from."""

from __future__ import annotations

from dataclasses import replace

from vmtune.errors import VmtuneError
from vmtune.forecast.conditions import QEMU_LIMIT_MS
from vmtune.hypervisor.protocol import Controls
from vmtune.intent.choosing import DIRTY_LIMIT, HELD_PERCENT
from vmtune.intent.setbacks import left_to_others
from vmtune.intent.steering import Abilities, Steering
from vmtune.intent.throttling import DirtyLimit
from vmtune.model.host.facts import VmState
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import MAX_SLOWDOWN_PERCENT
from vmtune.model.migration.record import Migration
from vmtune.model.migration.stated_intent import relaxed
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.tunable import Value

_LIMIT, _THROTTLE = "downtime_limit_ms", "max_cpu_throttle_percent"
_SWITCH, _RING = "dirty_limit", "dirty_ring_size_entries"
_BANDWIDTH = "max_bandwidth_bytes_per_s"


async def begin_steering(record: Migration, controls: Controls) -> Steering | None:
    """The state to steer *record*'s migration from: by what QEMU says is set, since an earlier
    process may have steered already. None without an intent.

    :raise VmtuneError: that cannot be read.
    """
    stated = record.intent
    if stated is None:
        return None
    rejected = {o.tunable for o in record.outcomes if o.status is Status.REJECTED}
    wanted: dict[str, Value] = {n: v for n, v in record.wanted.items() if n not in rejected}
    names = [_LIMIT, _THROTTLE]
    if wanted.get(_SWITCH) is True and _SWITCH in stated.chosen:
        names += [DIRTY_LIMIT, _RING]
    readings = await controls.read(record.vm, names)
    seen = {name: reading.value for name, reading in readings.items()}
    limit = _number(seen.get(_LIMIT), _number(wanted.get(_LIMIT), QEMU_LIMIT_MS))
    chosen = frozenset(stated.chosen) if stated.shadow else frozenset[str]()
    throttled = wanted.get("auto_converge") is True or "auto_converge" in chosen
    own = throttled and "auto_converge" in stated.chosen and _THROTTLE not in wanted
    percent = _number(seen.get(_THROTTLE), MAX_SLOWDOWN_PERCENT) if own else 0
    ring = DirtyLimit.of(_number(seen.get(_RING), 0), stated.curve)
    if ring is not None:
        most = ring.most_percent(stated.intent)
        ring, percent = ring.in_force(_number(seen.get(DIRTY_LIMIT), ring.mib_per_s(0)), most)
    # Until steering has set it, it is the most that QEMU may throttle, and does not by itself.
    held = any(_sets_throttle(step) for step in record.step_records)
    begun = Steering(
        stated.intent,
        Abilities(
            own,
            wanted.get("postcopy") is True or "postcopy" in chosen,
            _LIMIT not in stated.pinned,
            ring,
            _BANDWIDTH not in stated.pinned,
        ),
        max(1, limit),
        percent if ring is not None or (held and percent > HELD_PERCENT) else 0,
        relaxed(record.step_records),
        held=held,
        done=await _is_ended(record, controls),
        curve=stated.curve,
        beyond=stated.beyond,
    )
    return left_to_others(begun, record.step_records)


async def _is_ended(record: Migration, controls: Controls) -> bool:
    """Whether post-copy, a pause or an abort was done. Of one over which the process or the
    connection was lost QEMU tells: the guest is paused, and in post-copy, likewise once it is
    aborted, nothing is steered."""
    done = tuple(step for step in record.step_records if step.effect is StepEffect.DONE)
    certain = replace(record, step_records=done)
    if any(certain.did(action) for action in StepAction):
        return True
    if record.did(StepAction.PAUSE) is None:
        return False
    try:
        return await controls.vm_state(record.vm) is VmState.PAUSED
    except VmtuneError:
        return True


def _sets_throttle(step: StepRecord) -> bool:
    return step.steering and step.effect is not StepEffect.REFUSED and _THROTTLE in step.values


def _number(value: Value | None, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
