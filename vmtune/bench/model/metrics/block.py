"""The table of the block benchmark's metrics. How each is computed from a record is in
:mod:`vmtune.bench.block.reduce`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vmtune.bench.model.metrics.metric import Direction, Group, Metric, complete
from vmtune.bench.model.scenario.block import LoadPhase
from vmtune.units import Unit

_COUNTED = ("the load's ramp is over", "its time is over")
_NO_LOAD = "when the load did not come to its end without an error"

_LOAD = (
    Metric(
        "iops", "Requests per second", Unit.COUNT, Direction.HIGHER, Group.LOAD,
        "Requests that were completed, of all jobs, reads and writes together.",
        *_COUNTED, _NO_LOAD,
    ),
    Metric(
        "bandwidth_bytes_per_s", "Bandwidth", Unit.BYTES_PER_S, Direction.HIGHER, Group.LOAD,
        "Bytes that were read and written, of all jobs.", *_COUNTED, _NO_LOAD,
    ),
)  # fmt: skip

PERCENTILES: Mapping[str, float] = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
"""Those of latency that are metrics, in percent."""


def _latency() -> Iterable[Metric]:
    what = (
        "Of each request, by the clock of fio, or of the guest whose driver makes them; of reads "
        "and writes together. Where fio has more requests in flight than QEMU takes of one "
        "connection, they wait their turn in it. A guest's percentiles are exact to 3 %."
    )
    span = ("it was submitted", "its answer has come")
    yield Metric(
        "latency_mean_us", "Mean latency", Unit.US, Direction.LOWER, Group.LOAD, what, *span,
        _NO_LOAD,
    )  # fmt: skip
    for name, percent in PERCENTILES.items():
        yield Metric(
            f"latency_{name}_us", f"Latency, {percent:g} %", Unit.US, Direction.LOWER, Group.LOAD,
            f"{percent:g} % of the requests took no longer. {what}", *span, _NO_LOAD,
        )  # fmt: skip


_CPU = (
    Metric(
        "qemu_cpu_us_per_io", "QEMU's CPU time per request", Unit.US_PER_IO, Direction.LOWER,
        Group.CPU,
        "User and system time of all threads of QEMU by the requests that were completed: its "
        "NBD server and its polling included, fio not, and where a guest's driver makes them its "
        "vCPUs neither.",
        *_COUNTED, _NO_LOAD + ", and where QEMU's time could not be read in /proc",
    ),
)  # fmt: skip

_WHEN = {
    LoadPhase.BEFORE: "before the load: the last look before it is started",
    LoadPhase.DURING: "during the load: the most that was seen while it ran, its ramp included",
    LoadPhase.AFTER: "after the load: the last look, half a second or more after it has ended",
}
_OF_PROCESS = (
    ("maps", "", "Memory maps", Unit.COUNT,
     "Memory maps of QEMU, of which vm.max_map_count limits the number"),
    ("vsz", "_bytes", "Address space", Unit.BYTES, "QEMU's address space (VSZ)"),
    ("rss", "_bytes", "Memory", Unit.BYTES, "What of QEMU is in memory (RSS)"),
)  # fmt: skip


def _memory() -> Iterable[Metric]:
    for stem, suffix, title, unit, what in _OF_PROCESS:
        for phase, when in _WHEN.items():
            yield Metric(
                f"{stem}_{phase.value}{suffix}", f"{title} {phase.value} the load", unit,
                Direction.LOWER, Group.MEMORY, f"{what} {when}.",
                missing="where QEMU was not seen then",
            )  # fmt: skip


LOAD_SHARE = "load_completed"

_SUCCESS = (
    Metric(
        LOAD_SHARE, "Completed", Unit.NONE, Direction.HIGHER, Group.LOAD,
        "1 when the load ran to its end, 0 when it or QEMU failed. Over several runs, the share "
        "that completed. It is judged before every other metric.",
        missing="when a person ended it",
    ),
)  # fmt: skip

METRICS: Mapping[str, Metric] = complete((*_LOAD, *_latency(), *_CPU, *_memory(), *_SUCCESS))
"""Every metric by name, in the order in which people should read them."""

HEADLINE = (
    "iops",
    "latency_p50_us",
    "latency_p99_us",
    "qemu_cpu_us_per_io",
    "maps_during",
    "rss_during_bytes",
)
"""The few that a table of runs shows first."""
assert set(HEADLINE) <= METRICS.keys()
