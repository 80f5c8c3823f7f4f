"""A fake of the patched QEMU that the pack ``qemu-patched`` is for: one more type of object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.simulated.fakes import NEWEST, VM, recording
from vmtune.errors import CommandRefused
from vmtune.testing.fake.qemu import FakeQemu

TYPE = "x-vmtune"
OBJECT_ID = "vmtune"
POLICIES = ("stock", "fixed", "levels", "aimd")
SETTABLE: Mapping[str, Any] = {
    "reaper-policy": "stock",
    "reaper-interval-min": 50_000,
    "reaper-interval-max": 1_000_000,
    "pool-hard-limit": 0,
    "pool-resize-period": 0,
    "pool-minimum": 0,
}
COUNTERS: Mapping[str, int] = {
    "ring-full-exits": 3, "reaper-rounds": 41, "pages-reaped": 90_001,
    "short-ring-resets": 2, "reaper-interval": 50_000,
    "coroutines-in-use": 2, "coroutines-pooled": 128, "coroutines-created": 130,
    "coroutines-peak": 77,
}  # fmt: skip
SENDS: Mapping[str, int] = {
    "count": 900, "bytes": 471_859_200, "time-us": 190_000, "cpu-us": 150_000,
    "zero-copy-count": 450, "zero-copy-bytes": 471_800_000, "zero-copy-copied": 449,
    "flush-count": 12, "flush-us": 2500,
}  # fmt: skip
"""The members of the property ``sends``."""
READ_ONLY: Mapping[str, Any] = {**COUNTERS, "sends": SENDS}
RANGES = {
    "reaper-interval-min": (100, 1_000_000),
    "reaper-interval-max": (100, 1_000_000),
    "pool-hard-limit": (0, 1_000_000),
    "pool-resize-period": (0, 86_400),
    "pool-minimum": (0, 1_000_000),
}
CONSENTS = (TYPE, *(f"{TYPE}.{name}" for name in SETTABLE))


class PatchedQemu(FakeQemu):
    """Refuses values as the patch is to: naming the property and its range."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(recording(NEWEST), VM, **settings)
        self.made = ""

    def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:  # any JSON
        if command == "qom-list-properties":
            self.commands.append((command, dict(arguments)))
            if arguments["typename"] != TYPE:
                raise CommandRefused(f"Class '{arguments['typename']}' not found")
            return [{"name": name, "type": "uint64"} for name in {**SETTABLE, **READ_ONLY}]
        if command == "object-add" and arguments["qom-type"] == TYPE:
            self.commands.append((command, dict(arguments)))
            if self.made:
                raise CommandRefused(
                    f"there is an object of the type {TYPE}: it sets the whole QEMU"
                )
            self.made = arguments["id"]
            self.properties[f"/objects/{self.made}"] = {**SETTABLE, **READ_ONLY}
            return {}
        if command == "qom-list" and arguments["path"] == "/objects" and self.made:
            children = super().answer(command, arguments)
            return [*children, {"name": self.made, "type": f"child<{TYPE}>"}]
        if command == "qom-set" and arguments["path"] == f"/objects/{self.made}":
            self._check(arguments["property"], arguments["value"])
        return super().answer(command, arguments)

    def _check(self, name: str, value: Any) -> None:
        if name in READ_ONLY:
            raise CommandRefused(f"Insufficient permission to perform this operation on {name}")
        if name == "reaper-policy":
            if value not in POLICIES:
                known = f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}"
                raise CommandRefused(f"reaper-policy expects {known}, not '{value}'")
            return
        least, most = RANGES[name]
        if not least <= value <= most:
            raise CommandRefused(f"{name} expects a value between {least} and {most}, not {value}")
