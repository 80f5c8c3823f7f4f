"""Dirty rings that are not there: a fake QEMU's measurements of its vCPUs' dirty rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vmtune.errors import CommandRefused
from vmtune.model.versions import Version

_MILLISECONDS_SINCE = Version(8, 2)


@dataclass(slots=True)
class FakeRing:
    """A dirty ring for each vCPU, and what calc-dirty-rate finds there.

    :param entries: 0 for a VM that tracks with a bitmap.
    :param mib_per_s: what a measurement finds of each vCPU.
    :param measuring: how many more queries a measurement takes.
    :param measurements: how many there have been.
    :param changed_mib_per_s: what sampled pages tell.
    """

    entries: int = 0
    mib_per_s: tuple[int, ...] = (100,)
    measuring: int = 0
    measurements: int = 0
    changed_mib_per_s: int = 10
    _sampled: bool = field(default=False)
    _over_ms: int = field(default=0)

    def measure(self, arguments: Mapping[str, Any], version: Version) -> dict[str, Any]:
        """calc-dirty-rate.

        :raise CommandRefused: in QEMU's words.
        """
        if "calc-time-unit" in arguments and version < _MILLISECONDS_SINCE:
            raise CommandRefused("Parameter 'calc-time-unit' is unexpected")
        if self.measuring:
            self.measuring -= 1  # it also ends when it is not queried
            raise CommandRefused("the dirty rate is already being measured")
        if arguments["mode"] == "dirty-ring" and not self.entries:
            raise CommandRefused("mode dirty-ring is not enabled, use other method instead.")
        unit_ms = 1 if "calc-time-unit" in arguments else 1000
        self.measuring, self._over_ms = 2, arguments["calc-time"] * unit_ms
        self._sampled = arguments["mode"] == "page-sampling"
        self.measurements += 1
        return {}

    def reply(self, arguments: Mapping[str, Any], version: Version) -> dict[str, Any]:
        """query-dirty-rate: unstarted, measuring, measured."""
        if "calc-time-unit" in arguments and version < _MILLISECONDS_SINCE:
            raise CommandRefused("Parameter 'calc-time-unit' is unexpected")
        if not self.measurements:
            return {"status": "unstarted", "calc-time": 0}
        if self.measuring:
            self.measuring -= 1
            return {"status": "unstarted" if self.measuring == 1 else "measuring", "calc-time": 0}
        unit_ms = 1 if "calc-time-unit" in arguments else 1000
        took = self._over_ms // unit_ms
        if self._sampled:
            rate = self.changed_mib_per_s
            return {"status": "measured", "calc-time": took, "dirty-rate": rate}
        rows = [{"id": n, "dirty-rate": rate} for n, rate in enumerate(self.mib_per_s)]
        return {"status": "measured", "calc-time": took, "vcpu-dirty-rate": rows[::-1]}
