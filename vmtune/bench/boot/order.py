"""What a run of the boot benchmark takes, its phases, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.model.tunables.tunable import Value

DEFAULT_CACHE = Path("/var/cache/vmtune")


@dataclass(frozen=True, slots=True)
class BootOrder:
    """A boot to do.

    :param values: an arm's tunables, laid over the scenario's.
    :param cache: where the kernel and the initramfs of the Linux guest are cached.
    """

    scenario: BootScenario
    values: Mapping[str, Value] = field(default_factory=dict)
    testbed: DirectTestbed = field(default_factory=DirectTestbed)
    cache: Path = DEFAULT_CACHE

    @property
    def effective(self) -> BootScenario:
        """The scenario with the arm's values.

        :raise InvalidInput: they cannot be had for a boot.
        """
        return self.scenario.with_values(self.values)


class BootPhase(StrEnum):
    """What a boot is doing."""

    PREPARING = "preparing"
    """The guest is built, or fetched: not measured."""
    STARTING = "starting"
    """QEMU sets the VM up."""
    FIRMWARE = "firmware"
    LOADING = "loading the kernel"
    KERNEL = "kernel"
    CLEANING_UP = "cleaning up"


@dataclass(frozen=True, slots=True)
class BootResult:
    """How a boot ended.

    :param state: completed: it reached user space; not converged: it was ended at the scenario's
        limit; failed: QEMU died.
    :param failure: QEMU's last words where it died.
    :param kvm: whether the guest ran by KVM, else by TCG.
    """

    state: RunState
    record: BootRecord
    failure: str = ""
    kvm: bool = False
