"""The counters of sends of a run's QEMU, where it is a patched one (vmtune/packs/qemu-10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmtune.bench.model.runs.send_record import IterationSends, SendCounts, SendRecord
from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.packs import list_objects
from vmtune.model.tunables.packs.access import consent_to_qom

TYPE = "x-vmtune"
PROPERTY = "sends"
CONSENTS = frozenset({consent_to_qom(TYPE)})
"""What the monitor has to let through: the object that shows the counters. It changes nothing
while nothing is set."""
_ID = "vmtune"

MEMBERS: Mapping[str, str] = {
    "sends": "count",
    "sent_bytes": "bytes",
    "send_us": "time-us",
    "send_cpu_us": "cpu-us",
    "zero_copy_sends": "zero-copy-count",
    "zero_copy_bytes": "zero-copy-bytes",
    "copied_sends": "zero-copy-copied",
    "flushes": "flush-count",
    "flush_us": "flush-us",
}
"""Which member of the property each figure is."""


class SendCounters:
    """Reads the counters of one QEMU.

    :param monitor: with the consents :data:`CONSENTS`.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._path: str | None = None

    async def prepare(self) -> bool:
        """Make the object that shows them, unless there is one; False where this QEMU counts no
        sends.

        :raise VmtuneError: as :meth:`Monitor.execute` does, but for a QEMU that has no such type.
        """
        try:
            listed = await self._monitor.execute("qom-list-properties", {"typename": TYPE})
        except CommandRefused:
            return False
        if PROPERTY not in {row["name"] for row in listed}:
            return False
        there = (await list_objects(self._monitor)).get(TYPE)
        if not there:
            await self._monitor.execute("object-add", {"qom-type": TYPE, "id": _ID})
        self._path = there[0] if there else f"/objects/{_ID}"
        return True

    async def read(self) -> SendCounts | None:
        """What they are now, since QEMU started; None unless prepared.

        :raise VmtuneError: as :meth:`Monitor.execute` does.
        """
        if self._path is None:
            return None
        found = await self._monitor.execute("qom-get", {"path": self._path, "property": PROPERTY})
        return counts_of(found)


def counts_of(members: Mapping[str, Any]) -> SendCounts:  # any JSON
    """The property's value, as QEMU gives it."""
    return SendCounts(**{name: int(members[member]) for name, member in MEMBERS.items()})


class SendLog:
    """Gathers what was read while a migration ran.

    :param before: as they were when it was begun.
    """

    def __init__(self, before: SendCounts) -> None:
        self._before = before
        self._last: dict[int, tuple[float, SendCounts]] = {}

    def add(self, iteration: int, at_ms: float, counts: SendCounts) -> None:
        """A look, in that iteration."""
        newest = max([iteration, *self._last])
        self._last[newest] = at_ms, counts

    @property
    def newest(self) -> int:
        """The last iteration that was seen; 0 for none."""
        return max(self._last, default=0)

    def record(self) -> SendRecord:
        """All of it; each iteration from the last look at the one before."""
        rows, before = [], self._before
        for iteration, (at_ms, counts) in self._last.items():
            rows.append(IterationSends(iteration, at_ms, counts.since(before)))
            before = counts
        return SendRecord(before.since(self._before), tuple(rows))
