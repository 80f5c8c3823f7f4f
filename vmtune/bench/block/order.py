"""What a measurement of the block benchmark takes, its phases, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockRecord, BlockScenario
from vmtune.model.tunables.tunable import Value

DEFAULT_SCRATCH = Path("/var/tmp/vmtune-bench")  # noqa: S108 - each run makes a folder of its own


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """A measurement to do.

    :param values: an arm's tunables, laid over the scenario's.
    :param testbed: the QEMU, and the folder in which each run has one of its own for its sockets.
    :param scratch: where node files are made, in a folder of the run's own: on the disk that is
        to serve them.
    :param kvm: the guest that loads disks runs by KVM, else by TCG.
    """

    scenario: BlockScenario
    values: Mapping[str, Value] = field(default_factory=dict)
    testbed: DirectTestbed = field(default_factory=DirectTestbed)
    scratch: Path = DEFAULT_SCRATCH
    kvm: bool = False

    @property
    def effective(self) -> BlockScenario:
        """The scenario with the arm's values.

        :raise InvalidInput: the two contradict each other.
        """
        return self.scenario.with_values(self.values)


class BlockPhase(StrEnum):
    """What a measurement is doing."""

    STARTING = "starting"
    LOADING = "loading"
    CLEANING_UP = "cleaning up"


@dataclass(frozen=True, slots=True)
class BlockResult:
    """How a measurement ended.

    :param state: completed or failed.
    :param failure: why it failed, in QEMU's, fio's or vmtune's words.
    """

    state: RunState
    record: BlockRecord
    failure: str = ""
