"""Values that the user, the profile or its steps set win over an intent's goals: which of these
they break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmtune import units
from vmtune.model.migration.intent import MAX_SLOWDOWN_PERCENT, Intent
from vmtune.model.migration.steps import SetValues, Step, StepAction
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

LIMIT, BANDWIDTH = "downtime_limit_ms", "max_bandwidth_bytes_per_s"


def contradiction(intent: Intent, values: Mapping[str, Value], steps: Sequence[Step]) -> str | None:
    """Why a goal of *intent* cannot be kept with *values* and *steps*, which stay as they are; None
    where they leave all goals possible."""
    silence, most = intent.max_silence_ms, intent.max_bandwidth_bytes_per_s
    if silence is not None:
        longest = max(_set(LIMIT, values, steps), default=0)
        if longest > silence:
            return f"a downtime limit of {longest:,} ms is set, and wins over the silence"
        if any(step.action is StepAction.PAUSE for step in steps):
            return "a convergence step pauses the guest, and wins over the silence"
    if most is not None:
        for limit in _set(BANDWIDTH, values, steps):
            if limit == 0 or limit > most:
                said = units.render(limit, Unit.BYTES_PER_S) if limit else "no limit"
                return f"a bandwidth of {said} is set, and wins over the intent's"
    return None


def _set(name: str, values: Mapping[str, Value], steps: Sequence[Step]) -> Iterator[int]:
    found = [values.get(name)]
    for step in steps:
        if isinstance(step.action, SetValues):
            found.append(dict(step.action.values).get(name))
    for value in found:
        if isinstance(value, int):
            yield value


def limit_of(values: Mapping[str, Value]) -> int | None:
    """The downtime limit that is set; None where it is left to steering."""
    value = values.get(LIMIT)
    return value if isinstance(value, int) else None


def throttle_of(values: Mapping[str, Value], own_percent: int, fastest_bytes_per_s: float) -> int:
    """The hardest throttle that is to be expected: *own_percent* by steering, where nothing is set;
    that of a user who throttles by auto-converge or by the dirty limit, and 0 where auto-converge
    is switched off.

    :param fastest_bytes_per_s: how fast the guest dirties memory at most.
    """
    switch = values.get("auto_converge")
    if values.get("dirty_limit") is True:
        limit = values.get("vcpu_dirty_limit_mib_per_s", 1)  # QEMU's default
        assert isinstance(limit, int), "a number"
        left = (limit << 20) / max(1.0, fastest_bytes_per_s)
        return max(0, min(MAX_SLOWDOWN_PERCENT, int(100 * (1 - left))))
    if switch is False:
        return 0
    hardest = values.get("max_cpu_throttle_percent", MAX_SLOWDOWN_PERCENT)
    return hardest if switch is True and isinstance(hardest, int) else own_percent
