"""A service without privileges has its limits set by the root unit vmtune-limits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from vmtune.errors import CommandRefused
from vmtune.hypervisor.linux.sysctl import PROC_SYS, Sysctls, Wishes, read_journal
from vmtune.model.host.limits import Entry, Step, Wish, next_step

ROOT_JOURNAL = Path("/var/lib/vmtune-limits/journal.json")
"""The unit's own: a process that may request limits must not write their previous values."""
_LOOK_EVERY_S = 0.05
_TELL_EVERY_S = 1.0


class UnitSysctls:
    """Waits until systemd's path unit has seen the wishes and its service has set them.

    The wishes are in the file that the unit watches by the time that :meth:`reach` is called.
    systemd forgets a change that it sees while the service still ends after the one before
    (src/core/path.c: what PathChanged watches is not checked again then), so the file is touched
    until they are set.

    :param journal: the root part's, which is readable by all.
    :param wishes: the file.
    """

    def __init__(
        self,
        journal: Path = ROOT_JOURNAL,
        proc: Path = PROC_SYS,
        within_s: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
        wishes: Path | None = None,
        tell_every_s: float = _TELL_EVERY_S,
    ) -> None:
        self._wishes = wishes
        self._ask_every_s = tell_every_s
        self._journal = journal
        self._seen = Sysctls(journal, proc)
        self._within_s = within_s
        self._sleep = sleep

    def live(self) -> dict[str, int]:
        """Each one's value right now."""
        return self._seen.live()

    def journal(self) -> dict[str, Entry]:
        """What the root part has changed and not yet restored."""
        return read_journal(self._journal)

    def reach(self, wishes: Wishes) -> None:
        """Wait.

        :raise CommandRefused: nothing has happened.
        """
        asked_at = time.monotonic()
        deadline = asked_at + self._within_s
        while not self._reached(wishes):
            now = time.monotonic()
            if self._wishes is not None and now - asked_at >= self._ask_every_s:
                asked_at = now
                os.utime(self._wishes)
            if now > deadline:
                raise CommandRefused(
                    "the root part did not carry it out",
                    field="host",
                    code="host_unit_silent",
                    remedy="systemctl enable --now vmtune-limits.path; "
                    "`journalctl -u vmtune-limits` says why it could not",
                )
            self._sleep(_LOOK_EVERY_S)

    def _reached(self, wishes: Wishes) -> bool:
        entries, live = self.journal(), self.live()
        names = [name for name in live if name in wishes or name in entries]
        steps = {n: next_step(wishes.get(n, Wish()), entries.get(n), live[n]) for n in names}
        return all(_is_done(step, entries.get(name)) for name, step in steps.items())


def _is_done(step: Step, entry: Entry | None) -> bool:
    """Whether nothing is left to be written, and the journal says so."""
    return step.write is None and step.entry == entry and not (step.done and entry)
