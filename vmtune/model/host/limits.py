"""Limits of the host that vmtune may raise, and how they are restored. Pure.

A limit is one for all VMs of the host, so each requester has a claim of its own: the greatest of
all claims holds, and without claims the value of before. vmtune only raises and restores: never
below what was there before, nor below what a running VM needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from vmtune.errors import InvalidInput
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route

OPERATOR = "operator"
"""The claimant of what an operator set (``vmtune host limits``)."""
_MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Sysctl:
    """A sysctl that vmtune may write.

    :param name: as sysctl(8) and sysctl.d(5) have it.
    :param least: nothing below is ever written but a value of before; *most* likewise.
    """

    name: str
    least: int
    most: int

    @property
    def path(self) -> str:
        """Where it is below /proc/sys."""
        return self.name.replace(".", "/")


SYSCTLS: Mapping[str, Sysctl] = MappingProxyType(
    {
        # The kernel's own default, include/linux/mm.h: DEFAULT_MAX_MAP_COUNT.
        "vm_max_map_count": Sysctl("vm.max_map_count", 65530, _MAX_INT),
        # Below this zero-copy was seen to fail; it was the kernel's default for long.
        "net_core_optmem_max_bytes": Sysctl("net.core.optmem_max", 20480, _MAX_INT),
    }
)
"""By tunable."""
assert all(BUILT_IN[name].route is Route.HOST for name in SYSCTLS), "no setting of the host"


def check_limit(tunable: str, value: object) -> int:
    """*value* as a host's limit.

    :raise InvalidInput: it is no such limit, or out of range.
    """
    row = SYSCTLS.get(tunable)
    if row is None:
        raise InvalidInput(
            f"{tunable[:80]!r} is not a limit of the host that vmtune sets",
            field=f"values.{tunable[:80]}",
            code="unknown_limit",
            remedy=f"there are {', '.join(SYSCTLS)}",
        )
    try:
        number = BUILT_IN[tunable].accept(value)
    except ValueError as error:
        raise InvalidInput(
            str(error), field=f"values.{tunable}", code="invalid_value",
            remedy=f"{row.least} to {row.most}",
        ) from error  # fmt: skip
    assert isinstance(number, int), f"{tunable} is not a number"
    if not row.least <= number <= row.most:
        raise InvalidInput(
            f"{row.name} is not set to {number}: {row.least} to {row.most} are accepted",
            field=f"values.{tunable}",
            code="out_of_range",
            remedy=f"{row.least} to {row.most}",
        )
    return number


Claims = Mapping[str, int]
"""The requested values, by claimant."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What a limit must not fall below.

    :param why: which VM needs it, for people.
    """

    value: int
    why: str


@dataclass(frozen=True, slots=True)
class Wish:
    """The claims on one limit.

    :param floor: None if the value of before can be restored.
    """

    claims: Claims = field(default_factory=dict)
    floor: Floor | None = None

    @property
    def asked(self) -> int | None:
        """The greatest claim; None if there is none."""
        return max(self.claims.values(), default=None)

    def with_claim(self, owner: str, value: int) -> Wish:
        """With one claim more, or another."""
        return replace(self, claims={**self.claims, owner: value})

    def without(self, owner: str) -> Wish:
        """Without one claimant's claim."""
        return replace(self, claims={o: v for o, v in self.claims.items() if o != owner})


@dataclass(frozen=True, slots=True)
class Entry:
    """What the journal has of one limit that vmtune has changed.

    :param before: what it was.
    :param ours: every value that vmtune has set or was about to set: any other was set by others
        since.
    """

    before: int
    ours: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What to do about one limit.

    :param entry: what the journal must contain before anything is written; None if nothing has been
        changed, or nothing is left to restore.
    :param write: the value to write; None to leave it.
    :param keep: the value for sysctl.d, for after a reboot; None for nothing of vmtune's.
    :param done: the journal's entry goes once it is written.
    """

    entry: Entry | None
    write: int | None = None
    keep: int | None = None
    done: bool = False


def next_step(wish: Wish, entry: Entry | None, live: int) -> Step:
    """What brings a limit to what is wished for. Doing it again changes nothing more.

    :param entry: the journal's; None where vmtune has changed nothing.
    :param live: what it is right now.
    """
    asked = wish.asked
    if asked is None:
        return _come_back(wish, entry, live)
    if entry is None:
        if live >= asked:
            return Step(None)
        return Step(Entry(live, (asked,)), write=asked, keep=asked)
    if live not in entry.ours and live > entry.before and live >= asked:
        # Others have raised it meanwhile: that is the value to restore.
        return Step(Entry(live, (asked,)), keep=asked)
    target = max(asked, entry.before, _floor(wish, live))
    ours = tuple(dict.fromkeys((*entry.ours, target)))
    return Step(replace(entry, ours=ours), write=target if target != live else None, keep=target)


def _come_back(wish: Wish, entry: Entry | None, live: int) -> Step:
    if entry is None or live not in entry.ours:
        # Nothing of ours is left: it was not written yet, or others have set it since.
        return Step(entry, done=True)
    target = max(entry.before, _floor(wish, live))
    if target > entry.before:
        ours = tuple(dict.fromkeys((*entry.ours, target)))
        return Step(
            replace(entry, ours=ours), write=target if target != live else None, keep=target
        )
    return Step(entry, write=target if target != live else None, done=True)


def _floor(wish: Wish, live: int) -> int:
    """What must not be fallen below: never more than what it is right now."""
    return min(live, wish.floor.value) if wish.floor else 0
