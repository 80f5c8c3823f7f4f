"""A migration with made-up figures, which advances on command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vmtune.model.migration.record import QemuStatus
from vmtune.units import PAGE_BYTES

_STEP_MS = 100
_DOWNTIME_MS = 12
_ITERATIONS = 3


@dataclass(slots=True)
class FakeMigration:
    """One outgoing migration of a fake QEMU.

    :param uri: where to; empty where there has been none.
    :param iterations: after how many it is done, where it converges.
    """

    uri: str = ""
    memory_bytes: int = 0
    status: QemuStatus = QemuStatus.NONE
    iteration: int = 0
    iterations: int = _ITERATIONS
    elapsed_ms: int = 0
    error: str = ""
    early_completed: bool = False

    def begin(self, early_completed: bool) -> None:
        """Start. *early_completed*: say so once before the figures are there, as 7.2 does."""
        self.status = QemuStatus.SETUP
        self.early_completed = early_completed

    def step(self, device: bool, converges: bool) -> None:
        """The next state or iteration. *device*: with that state, as 8.0 and later have it;
        without *converges* it iterates without end."""
        if self.status in (QemuStatus.POSTCOPY_PAUSED, QemuStatus.POSTCOPY_RECOVER_SETUP):
            return
        self.elapsed_ms += _STEP_MS
        if self.status is QemuStatus.SETUP:
            self.status, self.iteration = QemuStatus.ACTIVE, 1
        elif self.status is QemuStatus.ACTIVE and not (
            converges and self.iterations <= self.iteration
        ):
            self.iteration += 1
        elif self.status is QemuStatus.ACTIVE and device:
            self.status = QemuStatus.DEVICE
        else:
            self.status = QemuStatus.COMPLETED

    def end(self, status: QemuStatus, error: str = "") -> None:
        """End it without success."""
        self.status, self.error = status, error

    def reply(self) -> dict[str, Any]:  # any JSON
        """What query-migrate says."""
        if self.status is QemuStatus.NONE:
            return {}
        if self.status is QemuStatus.FAILED:
            return {"status": "failed", "error-desc": self.error}
        if self.status in (QemuStatus.CANCELLED, QemuStatus.SETUP):
            return {"status": self.status.value}
        reply = {
            "status": self.status.value,
            "total-time": self.elapsed_ms,
            "setup-time": 1,
            "ram": self._ram(),
        }
        if self.status is QemuStatus.POSTCOPY_RECOVER_SETUP:
            self.status = QemuStatus.POSTCOPY_PAUSED  # it could not connect
        if self.error:
            reply["error-desc"] = self.error
        if self.status is not QemuStatus.COMPLETED:
            return {**reply, "expected-downtime": 300}
        if self.early_completed:
            self.early_completed = False
            return {**reply, "total-time": 0, "downtime": 0}
        return {**reply, "downtime": _DOWNTIME_MS}

    def _ram(self) -> dict[str, Any]:
        """Each iteration sends half of what the one before sent."""
        pages = self.memory_bytes // PAGE_BYTES
        left = 0 if self.status is QemuStatus.COMPLETED else pages >> max(1, self.iteration)
        sent = 2 * pages - 2 * (pages >> max(1, self.iteration))
        return {
            "transferred": sent * PAGE_BYTES,
            "remaining": left * PAGE_BYTES,
            "total": self.memory_bytes,
            "duplicate": 0,
            "normal": sent,
            "normal-bytes": sent * PAGE_BYTES,
            "page-size": PAGE_BYTES,
            "dirty-sync-count": self.iteration,
            "dirty-pages-rate": left,
            "mbps": 1000.0,
            "multifd-bytes": 0,
            "postcopy-bytes": 0,
            "dirty-sync-missed-zero-copy": 0,
        }
