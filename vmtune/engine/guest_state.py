"""Where a migrating guest is: one table of every pair of what its two hosts say.

It follows QEMU's docs/devel/migration/postcopy.rst (until all pages have arrived, the destination
runs a guest of which the source holds a part) and libvirt's reasons of a domain's state
(virDomainRunningReason and virDomainPausedReason, ``POSTCOPY`` and ``POSTCOPY_FAILED``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.record import QemuStatus


@dataclass(frozen=True, slots=True)
class HostView:
    """The VM's state on a host.

    :param state: None where the host does not have it.
    :param silent: why the host cannot be queried; empty if it answered.
    :param status: QEMU's last migration, where the host has the VM and QEMU can be asked.
    :param leaving: QEMU is done, and libvirt is not: it may still resume the guest here.
    :param left: it reported that the VM has migrated away.
    :param nowhere: no such host: it is unknown where the VM went.
    :param reason: what libvirt says of post-copy; none without libvirt.
    :param switched: QEMU was seen in post-copy.
    :param arrived: its QEMU has received the guest by a migration, and has sent it nowhere since.
    """

    state: VmState | None = None
    silent: str = ""
    status: QemuStatus | None = None
    why: str = ""
    leaving: bool = False
    left: bool = False
    nowhere: bool = False
    reason: Postcopy = Postcopy.NONE
    switched: bool = False
    arrived: bool = False

    @property
    def present(self) -> bool:
        return self.state in (VmState.RUNNING, VmState.PAUSED)

    @property
    def split(self) -> bool:
        """It has the VM in post-copy: its memory is on two hosts."""
        if self.status is not None and self.status.in_postcopy:
            return self.present
        if self.rolled_back:
            return False
        all_arrived = self.status is QemuStatus.COMPLETED  # libvirt's reason may be older
        return self.present and self.reason is not Postcopy.NONE and not all_arrived

    @property
    def broken(self) -> bool:
        """It has the VM in a post-copy whose connection is lost."""
        if self.status is not None and self.status.in_postcopy:
            return self.present and self.status is QemuStatus.POSTCOPY_PAUSED
        return self.split and self.reason is Postcopy.FAILED

    @property
    def rolled_back(self) -> bool:
        """Its QEMU runs the guest of before the switch to post-copy again. QEMU does so where all
        was sent and the connection, or the destination, ended before that was confirmed
        (``migration_completion`` and ``migration_iteration_finish`` in migration/migration.c; seen
        of 10.0.2)."""
        switched = self.switched or self.reason is not Postcopy.NONE
        return switched and self.state is VmState.RUNNING and self.status is QemuStatus.FAILED

    @property
    def left_behind(self) -> bool:
        """QEMU has sent all of it, and libvirt no longer waits for the destination's word: it
        was ended meanwhile (qemuProcessRecoverMigrationOut in libvirt's
        src/qemu/qemu_process.c)."""
        done = self.status is QemuStatus.COMPLETED and not self.leaving
        return done and self.state is VmState.PAUSED

    @property
    def moving(self) -> bool:
        return self.leaving or (self.status is not None and self.status.running)


class Part(StrEnum):
    """What a host has of the guest."""

    SILENT = "silent"
    """It cannot be asked."""
    NOWHERE = "nowhere"
    """It is not known which host it is."""
    NONE = "none"
    WAITS = "waits"
    """A QEMU that waits for the guest."""
    MOVING = "moving"
    """A whole guest, of which a copy is on its way."""
    SENT = "sent"
    """A stopped copy, of which all has been sent."""
    OLD = "old"
    """A whole guest, which runs as it was before the switch to post-copy."""
    WHOLE = "whole"
    SPLIT = "split"
    """A part of the guest's memory, in post-copy."""
    BROKEN = "broken"
    """The same, and the connection to the other part is lost."""


def part_of(view: HostView, source: bool) -> Part:
    """What a host's answer says that it has."""
    if view.nowhere:
        return Part.NOWHERE
    if view.silent:
        return Part.SILENT
    if view.state is VmState.INCOMING:
        return Part.WAITS
    if not view.present:
        return Part.NONE
    if view.split:
        return Part.BROKEN if view.broken else Part.SPLIT
    if source and view.rolled_back:
        return Part.OLD
    if source and view.left_behind:
        return Part.SENT
    return Part.MOVING if source and view.moving else Part.WHOLE


class Guest(StrEnum):
    """Where the guest is."""

    HERE = "here"
    """Whole, on the source."""
    THERE = "there"
    """Whole, on the destination."""
    SPLIT = "split"
    """On the destination, and part of its memory on the source."""
    BROKEN = "broken"
    """The same, and the two no longer reach each other."""
    LOST = "lost"
    """It was on the destination, whose QEMU is gone; what the source has is no whole guest."""
    ROLLED_BACK = "rolled_back"
    """On the source, as it was before the switch to post-copy."""
    GONE = "gone"
    """On neither host."""
    AWAY = "away"
    """It has left the source for a host that vmtune does not know."""
    OPEN = "open"
    """Not yet decided, or it cannot be seen."""


_ORDER = "SILENT NOWHERE NONE WAITS WHOLE SPLIT BROKEN"
_TABLE = """
SILENT   open   open   open   open   there? broken broken
NOWHERE  open   open   open   open   open   broken broken
NONE     open   away   gone   gone   there  broken broken
WAITS    open   open   open   open   open   broken broken
MOVING   open   open   open   open   open   split  broken
SENT     open   open   open   open   there? there? there?
OLD      open   rolled_back rolled_back rolled_back open open open
WHOLE    here   here   here   here   open   broken broken
SPLIT    split  split  open   split  split  split  broken
BROKEN   broken broken lost   broken broken broken broken
"""
"""The source's part in rows, the destination's in columns, in the words of :class:`Part`.
``there?`` holds only where :func:`_all_arrived`."""


def _read_table() -> Mapping[tuple[Part, Part], str]:
    columns = [Part[name] for name in _ORDER.split()]
    return {
        (Part[row], column): word
        for row, *words in (line.split() for line in _TABLE.split("\n") if line)
        for column, word in zip(columns, words, strict=True)
    }


TABLE = _read_table()
_IF_ALL_ARRIVED = f"{Guest.THERE}?"


def seen_from_both(here: HostView, there: HostView) -> HostView:
    """The source's answer, with what the destination's proves: one that runs a guest of which it
    lacks a part was switched to, whoever saw the switch."""
    return replace(here, switched=True) if there.split else here


def guest_state(here: HostView, there: HostView) -> Guest:
    """Where the guest is, from the source's and the destination's answers."""
    here = seen_from_both(here, there)
    word = TABLE[part_of(here, source=True), part_of(there, source=False)]
    if word != _IF_ALL_ARRIVED:
        return Guest(word)
    if _all_arrived(here, there):
        return Guest.THERE
    if there.split:
        return Guest.BROKEN if there.broken else Guest.SPLIT
    return Guest.OPEN


def _all_arrived(here: HostView, there: HostView) -> bool:
    """Whether QEMU has said so. The source's does when the destination has confirmed it
    (``migration-completed`` of the return path); of a silent one, the destination's has to."""
    if there.state is not VmState.RUNNING:
        return False
    if here.silent:
        return there.status is QemuStatus.COMPLETED
    return there.status is None or not there.status.in_postcopy
