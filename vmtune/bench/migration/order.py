"""What a run of the migration benchmark is given, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from vmtune.bench.model.runs.run import RunRecord, RunState
from vmtune.bench.model.scenario.block import ProcessSample
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.lab.settings import LabSettings
from vmtune.model.migration.record import Sample
from vmtune.model.tunables.tunable import Value

DEFAULT_QEMU = Path("qemu-system-x86_64")
DEFAULT_FOLDER = Path("/run/vmtune-bench")


@dataclass(frozen=True, slots=True)
class DirectTestbed:
    """Two QEMUs on this machine, managed by their monitors.

    :param qemu: the program, by path or by name.
    :param data_folder: where QEMU finds its firmware (``-L``); None: where it was installed.
    :param folder: each run keeps its sockets in a folder of its own in here. The path has to be
        short: a socket's path has at most 107 characters.
    :param consents: what the operator lets tunable packs send to QEMUs.
    """

    qemu: Path = DEFAULT_QEMU
    data_folder: Path | None = None
    folder: Path = DEFAULT_FOLDER
    consents: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LibvirtTestbed:
    """The two libvirt hosts of a lab that is up; each run has a domain of its own.

    :param consents: what the operator lets tunable packs send to QEMUs.
    """

    lab: LabSettings = field(default_factory=LabSettings)
    consents: frozenset[str] = frozenset()


Testbed = DirectTestbed | LibvirtTestbed


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A run to do.

    :param values: an arm's tunables, laid over the scenario's.
    :param kvm: whether to use KVM; None: where this machine has a usable one.
    :param sample_hz: how often the migration is sampled.
    :param overrides: codes of preflight findings that are to stop nothing.
    :param knows_pace: the warm-up lasts until the guest's pace is known, which a slow one's is
        after minutes; else as long as the scenario says.
    """

    scenario: Scenario
    values: Mapping[str, Value] = field(default_factory=dict)
    testbed: Testbed = field(default_factory=DirectTestbed)
    kvm: bool | None = None
    sample_hz: float = 20.0
    overrides: frozenset[str] = frozenset()
    knows_pace: bool = True

    @property
    def effective(self) -> Scenario:
        """The scenario with the arm's values.

        :raise InvalidInput: the two contradict each other.
        """
        return self.scenario.with_values(self.values)


class Phase(StrEnum):
    """What a run is doing."""

    STARTING = "starting"
    WARM_UP = "warm-up"
    MIGRATING = "migrating"
    COOL_DOWN = "cool-down"
    CLEANING_UP = "cleaning up"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where a run stands.

    :param share: about how much of it is done, 0 to 1; never goes back.
    :param at_ms: on the run's timeline; 0 before the guest works.
    :param phase: one of :class:`Phase`, or of those of blocks or boots.
    :param sample: the last sample of the migration.
    :param process: the last sample of a QEMU that serves blocks.
    """

    phase: StrEnum
    share: float
    at_ms: int
    sample: Sample | None = None
    process: ProcessSample | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    :param state: completed, not converged or failed.
    :param failure: why it failed, in QEMU's, libvirt's or vmtune's words.
    :param kvm: whether the guest ran by KVM, else by TCG or there was none.
    """

    state: RunState
    record: RunRecord
    failure: str = ""
    kvm: bool = False
