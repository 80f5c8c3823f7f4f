"""What a run of the boot benchmark is told, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from vmtune.bench.migration.order import DirectPlace
from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.model.tunables.tunable import Value

DEFAULT_CACHE = Path("/var/cache/vmtune")


@dataclass(frozen=True, slots=True)
class BootOrder:
    """A boot to do.

    :param values: an arm's tunables, laid over the scenario's.
    :param cache: where the kernel and the initramfs of the Linux guest are kept between runs.
    """

    scenario: BootScenario
    values: Mapping[str, Value] = field(default_factory=dict)
    place: DirectPlace = field(default_factory=DirectPlace)
    cache: Path = DEFAULT_CACHE

    @property
    def effective(self) -> BootScenario:
        """The scenario with the arm's values.

        :raise InvalidInput: they cannot be had for a boot.
        """
        return self.scenario.with_values(self.values)


class BootPhase(StrEnum):
    """What a boot is at."""

    PREPARING = "preparing"
    """The guest is built, or fetched: not measured."""
    STARTING = "starting"
    """QEMU sets the VM up."""
    FIRMWARE = "firmware"
    LOADING = "loading the kernel"
    KERNEL = "kernel"
    TIDYING = "tidying"


@dataclass(frozen=True, slots=True)
class BootProgress:
    """Where a boot stands.

    :param share: about how much of it is done, 0 to 1; never goes back. How long a boot takes
        is not known beforehand: each phase counts as much as any other.
    :param at_ms: on the boot's timeline; 0 before QEMU is started.
    """

    phase: BootPhase
    share: float
    at_ms: int


@dataclass(frozen=True, slots=True)
class BootResult:
    """How a boot ended.

    :param state: completed: it reached user space; not converged: it was given up at the
        scenario's limit; failed: QEMU died.
    :param failure: QEMU's last words where it died.
    :param kvm: whether the guest ran by KVM, else by TCG.
    """

    state: RunState
    record: BootRecord
    failure: str = ""
    kvm: bool = False
