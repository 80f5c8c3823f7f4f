"""What one boot recorded, raw, and its form as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from vmtune.documents.strict import Reader, join

MOST_TAIL = 8192
_MOST_WORDS = 2000
_MOST_MS = 1e10
_MOST_UPDATES = 1 << 53
_MOST_PARTS = 1000


class BootMarkName(StrEnum):
    """A part of a boot that was reached, in order."""

    GUEST = "guest"
    """QEMU has set the VM up and lets its vCPUs go: the guest's first instruction is next."""
    FIRMWARE = "firmware"
    """The firmware first asks QEMU for a part of its configuration."""
    LOADING = "loading"
    """The firmware has found its devices, and first asks QEMU about the kernel to load."""
    KERNEL = "kernel"
    """The first words of the guest's kernel on the serial port: of Linux the line with its
    version, once it has unpacked itself."""
    USER_SPACE = "user space"
    """The first program of the guest's user space says so on the serial port. The project's
    guest has none: there it is its beginning to work."""


class BootEnd(StrEnum):
    """How a boot ended."""

    USER_SPACE = "user space"
    """It reached user space; QEMU was ended then."""
    GIVEN_UP = "given up"
    """It had not by the scenario's limit."""
    DIED = "died"
    """QEMU or the guest ended by itself before, or QEMU stopped the guest for good."""


@dataclass(frozen=True, slots=True)
class BootMark:
    """A part of the boot was reached.

    :param at_ms: since the start of QEMU's process, by the host's clock.
    :param region_updates: how often KVM's memory regions had been updated by then; None where
        that was not counted.
    """

    name: BootMarkName
    at_ms: float
    region_updates: int | None = None


@dataclass(frozen=True, slots=True)
class BootRecord:
    """Everything that was recorded of a boot.

    :param ended_ms: when it reached user space, was given up, or was found dead.
    :param region_updates: by the name of QEMU's trace event, how often it came in all; None
        where that was not counted.
    :param cpu_ms: user and system time of QEMU's process; None where it could not be read.
    :param qemu: its version, in its own words.
    :param kernel: the guest's, in its own words.
    :param firmware: its name, and its version or hash.
    :param host_kernel: the release of the host's.
    :param srcutree: the parameters of the host kernel's SRCU, where it has such.
    :param serial_tail: the end of what came over the serial port.
    """

    end: BootEnd
    ended_ms: float
    marks: tuple[BootMark, ...] = ()
    region_updates: Mapping[str, int] | None = None
    cpu_ms: float | None = None
    qemu: str = ""
    kernel: str = ""
    firmware: str = ""
    host_kernel: str = ""
    srcutree: Mapping[str, str] = field(default_factory=dict)
    serial_tail: str = ""

    def mark(self, name: BootMarkName) -> BootMark | None:
        """That mark; None where it was not reached."""
        return next((each for each in self.marks if each.name is name), None)


def to_json(record: BootRecord) -> dict[str, Any]:  # any JSON
    """All of *record*, so that :func:`from_json` reads back the same."""
    return {
        **{each.name: getattr(record, each.name) for each in fields(BootRecord)},
        "end": record.end.value,
        "marks": [
            {"name": m.name.value, "at_ms": m.at_ms, "region_updates": m.region_updates}
            for m in record.marks
        ],
        "region_updates": None if record.region_updates is None else dict(record.region_updates),
        "srcutree": dict(record.srcutree),
    }


def from_json(raw: object, where: str = "") -> BootRecord:
    """A record from JSON.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    names = [each.name for each in fields(BootRecord)]
    given = reader.mapping(raw, where, names[2:], names[:2])

    def text(name: str, most: int = _MOST_WORDS) -> str:
        return reader.text(given.get(name, ""), join(where, name), most)

    cpu = given.get("cpu_ms")
    counts = given.get("region_updates")
    record = BootRecord(
        end=reader.choice(given.get("end"), join(where, "end"), BootEnd, BootEnd.DIED),
        ended_ms=reader.number(given.get("ended_ms"), join(where, "ended_ms"), 0, _MOST_MS),
        marks=reader.sequence(
            given.get("marks", ()), join(where, "marks"),
            lambda each, at: _mark(reader, each, at), len(BootMarkName),
        ),
        region_updates=None if counts is None else {
            str(name): reader.integer(count, join(where, f"region_updates.{name}"),
                                      0, _MOST_UPDATES)
            for name, count in _few(reader, counts, join(where, "region_updates")).items()
        },
        cpu_ms=None if cpu is None else reader.number(cpu, join(where, "cpu_ms"), 0, _MOST_MS),
        qemu=text("qemu"),
        kernel=text("kernel"),
        firmware=text("firmware"),
        host_kernel=text("host_kernel"),
        srcutree={
            str(name): reader.text(value, join(where, f"srcutree.{name}"), _MOST_WORDS)
            for name, value in _few(
                reader, given.get("srcutree", {}), join(where, "srcutree")
            ).items()
        },
        serial_tail=text("serial_tail", MOST_TAIL),
    )  # fmt: skip
    reader.done("the record of a boot cannot be accepted")
    return record


def _few(reader: Reader, raw: object, where: str) -> Mapping[str, object]:
    """*raw* as an object of at most _MOST_PARTS names."""
    found = reader.mapping(raw, where)
    if len(found) > _MOST_PARTS:
        reader.refuse(where, "too_many", f"there are {len(found):,} names", "leave some out")
        return {}
    return found


def _mark(reader: Reader, raw: object, where: str) -> BootMark:
    parts = reader.mapping(raw, where, ("region_updates",), ("name", "at_ms"))
    updates = parts.get("region_updates")
    return BootMark(
        reader.choice(parts.get("name"), join(where, "name"), BootMarkName, BootMarkName.GUEST),
        reader.number(parts.get("at_ms"), join(where, "at_ms"), 0, _MOST_MS),
        None if updates is None
        else reader.integer(updates, join(where, "region_updates"), 0, _MOST_UPDATES),
    )  # fmt: skip
