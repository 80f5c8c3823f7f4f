"""The one error tree of vmtune.

::

    VmtuneError
    ├── InvalidInput          a value, a body or a file that cannot be accepted
    ├── NotFound              no such host, VM, profile, ...
    ├── Conflict              the request contradicts what is stored or running
    │   ├── DuplicateName
    │   ├── TiedAssignments       selectors of two profiles that one VM could match
    │   ├── OperationInProgress   one application, migration or benchmark per VM
    │   ├── Blocked               the plan's preflight found blockers
    │   └── TooLate               the thing can no longer be aborted or changed
    ├── StaleRevision         If-Match names a revision that is no longer current
    ├── Unauthenticated       no credentials, or invalid ones
    ├── Forbidden             the caller is known and has no permission
    ├── TooManyAttempts       too many failed attempts; try again later
    ├── HostUnreachable       no connection to libvirt or QEMU could be made
    ├── MonitorBusy           another client holds QEMU's monitor
    ├── CommandRefused        QEMU or libvirt answered with an error
    ├── OutcomeUnknown        the connection was lost while a command ran
    └── SetupError            this machine or installation is not ready
        ├── SchemaMismatch    the database is of another version
        └── LabError          the two-host lab cannot be brought up or down

Every error has a list of :class:`Problem`: which field is wrong, why, and what to
do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

MAX_PROBLEMS = 50
"""As many as one error has; the others are a number. Who sends 80,000 unknown names must not cost
80,000 guesses at what was meant."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    :param field: path of the invalid input (``values.multifd_channels``,
        ``If-Match``); empty when it is no single field.
    :param code: stable machine-readable code, lower-case with underscores.
    :param message: what is wrong, in a sentence.
    :param remedy: what the user can do about it; empty when there is nothing.
    """

    field: str
    code: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        what_to_do = f" ({self.remedy})" if self.remedy else ""
        return f"{where}{self.message}{what_to_do}"


_MORE = "more_problems"


def and_more(count: int) -> Problem:
    """Stands for *count* problems that are not listed."""
    return Problem("", _MORE, f"and {count:,} more", "correct those that are listed")


def first_problems(things: Sequence[_T], problem: Callable[[_T], Problem]) -> list[Problem]:
    """The problems of the first :data:`MAX_PROBLEMS` things, and how many more there are."""
    found = [problem(thing) for thing in things[:MAX_PROBLEMS]]
    return found + [and_more(len(things) - MAX_PROBLEMS)] * (len(things) > MAX_PROBLEMS)


def _bounded(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """*problems* of several parts as one list: at most :data:`MAX_PROBLEMS`, then one number."""
    listed = [each for each in problems if each.code != _MORE]
    counted = [int(each.message.split()[1].replace(",", "")) for each in problems
               if each.code == _MORE]  # fmt: skip
    more = sum(counted) + max(0, len(listed) - MAX_PROBLEMS)
    return (*listed[:MAX_PROBLEMS], *([and_more(more)] if more else []))


class VmtuneError(Exception):
    """Root of all errors that vmtune raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        code: str = "",
        remedy: str = "",
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.problems: tuple[Problem, ...] = tuple(problems) or (
            Problem(field, code or type(self).code, message, remedy),
        )
        if len(self.problems) > 1:
            self.problems = _bounded(self.problems)

    def __str__(self) -> str:
        return "; ".join(str(problem) for problem in self.problems)


class InvalidInput(VmtuneError):
    """A value, a body or a file that cannot be accepted as it is."""

    code = "invalid_input"


class NotFound(VmtuneError):
    """The named object does not exist."""

    code = "not_found"


class Conflict(VmtuneError):
    """The request contradicts what is stored or what is running."""

    code = "conflict"


class DuplicateName(Conflict):
    """An object of that name exists already."""

    code = "duplicate_name"


class TiedAssignments(Conflict):
    """A VM could match two selectors that choose different profiles."""

    code = "tied_assignments"


class OperationInProgress(Conflict):
    """Another application or migration of the same VM is still running."""

    code = "operation_in_progress"


class Blocked(Conflict):
    """The preflight found blockers that were not overridden by name."""

    code = "blocked"


class TooLate(Conflict):
    """The operation has passed the point where it can be stopped."""

    code = "too_late"


class StaleRevision(VmtuneError):
    """If-Match names a revision that is no longer the current one."""

    code = "stale_revision"


class Unauthenticated(VmtuneError):
    """The request has no credentials, or invalid ones."""

    code = "unauthenticated"


class Forbidden(VmtuneError):
    """The caller is known and has no permission for this."""

    code = "forbidden"


class TooManyAttempts(VmtuneError):
    """Too many failed attempts.

    :param wait_s: seconds until the next attempt is accepted.
    """

    code = "too_many_attempts"

    def __init__(self, message: str, *, wait_s: int = 1, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.wait_s = wait_s


class HostUnreachable(VmtuneError):
    """No connection to the host's libvirt or QEMU could be made."""

    code = "host_unreachable"


class MonitorBusy(VmtuneError):
    """Another client holds QEMU's monitor: it accepts one at a time."""

    code = "monitor_busy"


class CommandRefused(VmtuneError):
    """QEMU or libvirt answered with an error."""

    code = "command_refused"


class OutcomeUnknown(VmtuneError):
    """The connection was lost while a command ran: it may have taken effect.

    It is neither failed nor done: read the state again, then decide.
    """

    code = "outcome_unknown"


class SetupError(VmtuneError):
    """This machine or this installation is not ready for what was asked."""

    code = "setup"


class TakenOver(VmtuneError):
    """Another service has taken over this one's work: this one must stop changing things."""

    code = "taken_over"


class SchemaMismatch(SetupError):
    """This version needs another schema of the database."""

    code = "schema_mismatch"


class LabError(SetupError):
    """The two-host lab cannot be brought up or down."""

    code = "lab"
