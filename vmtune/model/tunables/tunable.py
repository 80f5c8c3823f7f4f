"""What a tunable is: its name, type, unit, range, route, side, and the names that
QEMU and libvirt have for it. The rows are in :mod:`vmtune.model.tunables.built_in`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vmtune import units
from vmtune.documents.strict import short
from vmtune.model.tunables import texts
from vmtune.model.tunables.packs.access import Access
from vmtune.model.tunables.texts import TextForm
from vmtune.model.versions import Version
from vmtune.units import Unit

Value = bool | int | str
"""A tunable's value: true or false, an integer in the tunable's unit, or a word."""


class Kind(StrEnum):
    """The type of a tunable's value."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    CHOICE = "choice"
    TEXT = "text"


class Route(StrEnum):
    """How a value gets to where it sticks; see the routes table in the README."""

    MIGRATE = "migrate"
    MONITOR = "monitor"
    LIVE = "live"
    RUNNING = "running"
    BOOT = "boot"
    HOST = "host"
    CONTROL = "control"


class Side(StrEnum):
    """Which QEMU of a migration must have the value."""

    SOURCE = "source"
    DESTINATION = "destination"
    BOTH = "both"


class QmpKind(StrEnum):
    """Where QEMU keeps the value."""

    CAPABILITY = "capability"
    PARAMETER = "parameter"
    IOTHREAD = "iothread property"
    MAIN_LOOP = "main-loop property"
    DEVICE = "device property"
    ACCELERATOR = "accelerator option"
    QOM = "object property"
    COMMAND = "command of its own"


@dataclass(frozen=True, slots=True)
class QmpName:
    """QEMU's own name of a tunable."""

    kind: QmpKind
    name: str


class LibvirtKind(StrEnum):
    """How libvirt receives the value."""

    FLAG = "flag"
    PARAMETER = "typed parameter"
    CALL = "call"
    XML = "domain XML"
    AUTOMATIC = "set by libvirt itself"


@dataclass(frozen=True, slots=True)
class LibvirtName:
    """libvirt's own name of a tunable, and virsh's.

    :param scale: how many of the tunable's units one of libvirt's is; libvirt
        takes bandwidths in MiB/s.
    """

    kind: LibvirtKind
    name: str
    virsh: str = ""
    since: Version = Version(9)
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Tunable:
    """One setting, described once.

    :param default: QEMU 10's default; None when it depends
        on the host or the VM.
    :param minimum: smallest allowed integer, inclusive; likewise *maximum*.
    :param since: first QEMU release that offers it; *until* the last.
    :param overwriter: what would overwrite a value that is set without it; empty if nothing would.
    :param running: QEMU lets it change while a migration is active, and uses it.
    :param why: what it does and when to touch it, a sentence or two.
    :param pack: the tunable pack that it is of; empty for vmtune's own.
    :param access: how a pack's is read and set.
    :param read_only: a counter: it is shown, and nobody can set it.
    :param form: what a text may be.
    :param zero_reads_as: what 0, QEMU's own choice, reads back as since QEMU 11; None for 0.
    :param zero: what 0 stands for, in words, where it is no amount; empty where it is one.
    """

    name: str
    title: str
    why: str
    kind: Kind
    route: Route
    side: Side
    unit: Unit = Unit.NONE
    default: Value | None = None
    minimum: int | None = None
    maximum: int | None = None
    power_of_two: bool = False
    choices: tuple[str, ...] = ()
    qmp: QmpName | None = None
    libvirt: LibvirtName | None = None
    since: Version = Version(7, 2)
    until: Version | None = None
    overwriter: str = ""
    running: bool = False
    pack: str = ""
    access: Access | None = None
    read_only: bool = False
    form: TextForm = TextForm.NAME
    zero_reads_as: int | None = None
    zero: str = ""

    def reads_back(self, wanted: Value, seen: Value) -> bool:
        """Whether *seen* is how *wanted* reads back."""
        if type(seen) is not type(wanted):
            return False
        return seen == wanted or (wanted == 0 and seen == self.zero_reads_as)

    @property
    def probe(self) -> str:
        """How it is found out whether a QEMU or host offers it, and what it is set to."""
        if self.access is not None:
            return self.access.probe
        if self.qmp is not None:
            return _PROBES[self.qmp.kind].format(name=self.qmp.name)
        if self.route is Route.HOST:
            return "/proc of the host"
        if self.route is Route.CONTROL:
            return "query-version, and whether the VM has a dirty ring"
        if self.route is Route.BOOT:
            return "the domain XML"
        if self.name == "tls":
            return "query-migrate-parameters (tls-creds)"
        return "nothing: it is of one migration"

    def in_release(self, qemu: Version) -> bool:
        """Whether releases of *qemu*'s number offer it, bugfix releases of the last included."""
        return self.since <= qemu and (self.until is None or qemu[:2] <= self.until[:2])

    def accept(self, raw: object) -> Value:
        """*raw* as this tunable's value: checked, and converted to its unit.

        :raise ValueError: wrong type, wrong unit or out of range; the message
            names the reason and what would be accepted.
        """
        if self.read_only:
            raise ValueError("it is a counter of QEMU, which can only be read")
        if self.kind is Kind.BOOLEAN:
            return _boolean(raw)
        if self.kind is Kind.INTEGER:
            return self._integer(raw)
        if not isinstance(raw, str):
            raise ValueError(f"expects a word, not {_type_name(raw)}")
        if self.kind is Kind.CHOICE and raw not in self.choices:
            raise ValueError(f"{raw!r} is not one of {', '.join(self.choices)}")
        if self.kind is Kind.TEXT:
            if not texts.is_form(self.form, raw):
                raise ValueError(f"expects {texts.expects(self.form)}")
            return texts.canonical(self.form, raw)
        return raw

    def _integer(self, raw: object) -> int:
        if not isinstance(raw, int | str):
            raise ValueError(f"expects a whole number such as {units.examples(self.unit)}")
        if isinstance(raw, str) and self.zero and raw.strip() in (self.zero, self.render(0)):
            return 0
        value = self._whole(raw, units.parse(raw, self.unit))
        if self.minimum is not None and value < self.minimum:
            raise ValueError(
                f"{self._number(value)} is below the least, {self._number(self.minimum)}"
            )
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{self.render(value)} is above the most, {self.render(self.maximum)}")
        if self.power_of_two and value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise ValueError(
                f"{value} is not a power of two; the nearest are {below} and {below * 2}"
            )
        return value

    def _whole(self, raw: str | int, value: int) -> int:
        """*value* in whole steps of libvirt, the nearest, if *raw* is in bits, where no round
        number is whole: 10Gbit/s is 1,192 MiB/s. Bytes are meant as they are written."""
        scale = self.libvirt.scale if self.libvirt else 1
        if scale <= 1 or value < scale or not isinstance(raw, str) or "bit" not in raw:
            return value
        return round(value / scale) * scale

    def rounding(self, raw: object) -> str:
        """What is told of a text that :meth:`accept` rounds; empty if it does not."""
        if self.kind is not Kind.INTEGER or not isinstance(raw, str):
            return ""
        try:
            exact, value = units.parse(raw, self.unit), self.accept(raw)
        except ValueError:
            return ""
        return "" if value == exact else f"{raw.strip()} is rounded to {self.render(value)}"

    def render(self, value: Value | None) -> str:
        """*value* as people read it: ``on``, ``64 MiB``, ``0 (no limit)``, ``zstd``; None is
        ``unset``."""
        if value is None:
            return "unset"
        if isinstance(value, bool):
            return "on" if value else "off"
        if value == 0 and self.zero:
            return f"0 ({self.zero})"
        return value if isinstance(value, str) else self._number(value)

    def _number(self, value: int | None) -> str:
        return "unset" if value is None else units.render(value, self.unit)

    def allowed(self) -> str:
        """The accepted values in words, for help and error messages."""
        if self.read_only:
            return "nothing; it can only be read"
        if self.kind is Kind.BOOLEAN:
            return "on or off"
        if self.kind is Kind.CHOICE:
            return ", ".join(self.choices)
        if self.kind is Kind.TEXT:
            return texts.allowed(self.form)
        least, most = self._number(self.minimum), self._number(self.maximum)
        open_ended = self.maximum is None or self.maximum >= _NO_LIMIT
        text = f"at least {least}" if open_ended else f"{least} to {most}"
        return f"{text}, a power of two" if self.power_of_two else text


_NO_LIMIT = 1 << 60
"""From here on a maximum is that of QEMU's integers, which no machine comes near."""
_PROBES = {
    QmpKind.CAPABILITY: "query-migrate-capabilities",
    QmpKind.PARAMETER: "query-migrate-parameters",
    QmpKind.IOTHREAD: "query-iothreads, and qom-get of {name} on each iothread",
    QmpKind.MAIN_LOOP: "qom-get of {name} on the main-loop object",
    QmpKind.DEVICE: "qom-get of {name} on each virtio-blk device",
    QmpKind.ACCELERATOR: "the domain XML, or the command line of QEMU",
    QmpKind.QOM: "qom-list-properties and qom-get of {name}",
    QmpKind.COMMAND: "query-qmp-schema and {name}",
}
assert set(_PROBES) == set(QmpKind), "a place in QEMU without its probe"

_TRUE = frozenset({"on", "true", "yes"})
_FALSE = frozenset({"off", "false", "no"})


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    raise ValueError(f"expects on or off, not {short(raw)}")


def _type_name(raw: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list",
             dict: "an object", type(None): "null"}  # fmt: skip
    return names.get(type(raw), type(raw).__name__)
