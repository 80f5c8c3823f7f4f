"""What a user can do with a running migration, and why not, as far as its record tells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from vmtune.model.migration.copy_progress import MigrationPhase, phase_of
from vmtune.model.migration.postcopy import way_out
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.model.migration.steps import StepAction


class Control(StrEnum):
    """A way to help a migration to end."""

    DOWNTIME_LIMIT = "downtime_limit"
    BANDWIDTH = "bandwidth"
    THROTTLE = "throttle"
    POSTCOPY = "postcopy"
    PAUSE = "pause"
    DISK_WRITES = "disk_writes"
    """The guest's writes to its disks wait for the destination while these are copied."""


ACTIONS: Mapping[StepAction, Control] = {
    StepAction.POSTCOPY: Control.POSTCOPY,
    StepAction.PAUSE: Control.PAUSE,
}
"""The actions that a user can request."""
_SWITCHES = {Control.THROTTLE: "auto_converge", Control.POSTCOPY: "postcopy"}
"""What the migration must have been started with."""


_OF_DISKS = (Control.BANDWIDTH, Control.DISK_WRITES)
"""What helps while disks are copied: the bandwidth is that of each copy then."""


def why_not(control: Control, record: Migration) -> str:
    """Why *control* cannot be used now; empty where nothing is known against it."""
    if phase_of(record) is MigrationPhase.DISKS:
        return "" if control in _OF_DISKS else "its disks are copied, and the memory comes after"
    if control is Control.DISK_WRITES:
        return "no disk is being copied" if record.disks else "it copies no disks"
    if record.state is MigrationState.POSTCOPY_PAUSED:
        return "post-copy is paused: recover the migration first"
    if record.state is not MigrationState.ACTIVE:
        return f"the migration is {record.state.value}, not active"
    if record.did(StepAction.POSTCOPY) is not None:
        return "it has switched to post-copy: the guest runs on the destination"
    if control is Control.PAUSE and record.did(StepAction.PAUSE) is not None:
        return "the guest is paused until the migration ends"
    switch = _SWITCHES.get(control)
    if switch is not None and not _is_on(record, switch):
        return f"it was started without {switch}, which cannot be switched on while it runs"
    return ""


def migrates_already(record: Migration) -> str:
    """What is said of a VM whose migration has not ended, and what helps."""
    if record.state is MigrationState.POSTCOPY_PAUSED:
        return (
            f"its migration is paused in post-copy and cannot be aborted any more: "
            f"{way_out(record)}; shut down neither host"
        )
    if record.did(StepAction.POSTCOPY) is not None:
        return (
            "it migrates in post-copy, which cannot be aborted any more: wait until that has ended"
        )
    return "it migrates already: wait until that has ended, or abort it"


def _is_on(record: Migration, switch: str) -> bool:
    """Whether QEMU runs with *switch*, as read back; before that, whether it was asked for."""
    for outcome in record.outcomes:
        if outcome.tunable == switch and outcome.seen is not None:
            return outcome.seen is True
    return record.wanted.get(switch) is True
