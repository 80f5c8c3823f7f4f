"""What a forecast does not know, or leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmtune.errors import Problem
from vmtune.forecast.conditions import compresses
from vmtune.forecast.disk_copy import CopyProspect
from vmtune.forecast.path import UNPROVEN
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import used_bytes
from vmtune.model.migration.steps import Step
from vmtune.model.tunables.tunable import Value

_MEASURE = "vmtune forecast VM --to HOST, not long before, measures it"
NOT_MEASURED = Problem(
    "forecast",
    "not_measured_before",
    "the VM was not measured in the ten minutes before",
    _MEASURE,
)
NO_THROUGHPUT = Problem(
    "forecast",
    "throughput_not_known",
    "there was no bandwidth limit, and no migration between the two hosts was recorded: what the "
    "path carries was not known",
    "after one migration it is",
)
NOT_COMPUTED = Problem(
    "forecast",
    "not_computed",
    "a fault of vmtune kept it from being computed: its log says which",
    "report it; migrations do without forecasts",
)
MAY_BE_WHY = Problem(
    "forecast",
    "no_forecast_before",
    "the VM was not measured in the ten minutes before, or what the path carries was not known",
    _MEASURE,
)


def not_readable(reason: str) -> Problem:
    """What is set, or was recorded, could not be read."""
    return Problem(
        "forecast", "not_readable", f"what it was to run with could not be read: {reason}"
    )


def copy_notes(copy: CopyProspect, values: Mapping[str, Value]) -> list[Problem]:
    notes = []
    if not copy.sizes_known:
        notes.append(
            Problem(
                "values.copy_storage",
                "disk_sizes_not_known",
                "what some disks take on their host is not known: they may be copied whole",
            )
        )
    if not copy.records:
        notes.append(
            Problem(
                "values.copy_storage",
                "no_copy_history",
                "no copy of disks between these hosts is recorded: how fast their storage is, is "
                "not known",
                "after one such migration the bounds are narrower",
            )
        )
    if values.get("copy_synchronous_writes") is not True:
        notes.append(
            Problem(
                "values.copy_storage",
                "writes_not_included",
                "what the guest writes to its disks meanwhile is not known, and not included: the "
                "copy takes longer by it",
                "with copy_synchronous_writes the guest's writes wait, and the copy does not",
            )
        )
    return notes


def probe_notes(probe: DirtyProbe) -> list[Problem]:
    """What could not be measured of the guest."""
    notes = []
    if probe.lacks_short_times:
        notes.append(
            Problem(
                "vm",
                "short_times_not_measured",
                "its QEMU measures whole seconds only: whether the guest dirties in proportion to "
                "the time in less than one, or most of it at once, is not known; the bounds hold "
                "both",
                "QEMU 8.2 and newer measure milliseconds",
            )
        )
    if probe.used_bytes is None:
        used = used_bytes(probe)
        notes.append(
            Problem(
                "vm",
                "memory_in_use_not_known",
                "what of the guest's memory is in use cannot be seen: the bounds hold "
                f"{used.low / (1 << 20):,.0f} MiB, which it dirtied while it was measured, to all "
                f"{used.high / (1 << 20):,.0f} MiB",
            )
        )
    return notes


def plan_notes(
    steps: Sequence[Step], values: Mapping[str, Value], proven: bool, probe: DirtyProbe
) -> list[Problem]:
    notes = []
    if not proven:
        notes.append(
            Problem(
                "throughput",
                "no_history",
                "no migration between these hosts is recorded: the path may carry from "
                f"{UNPROVEN:g} of the limit to all of it, which is within the bounds, and more "
                "once QEMU lifts it",
                "after one migration the bounds are narrower",
            )
        )
    if steps:
        notes.append(
            Problem(
                "steps",
                "steps_not_included",
                "the profile's convergence steps are not included: they may end it sooner",
            )
        )
    if values.get("xbzrle") is True:
        notes.append(
            Problem(
                "values",
                "compression_not_known",
                "what XBZRLE sends of a page that it has sent before is not known: the bounds hold "
                "next to nothing to six tenths of the page",
            )
        )
    elif probe.contents is None and compresses(values):
        notes.append(
            Problem(
                "values",
                "compression_not_known",
                "how well the guest's memory is compressed is not known: the bounds hold a third "
                "of its size to all of it",
            )
        )
    return notes
