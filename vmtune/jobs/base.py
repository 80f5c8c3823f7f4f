"""The job engine's interface, as services use it.

A *job* has an id, chosen by the caller, and a *kind*. A kind is a sequence of
named *phases*, each an async function of the job's id. Phases run one after
the other; the last one, the *final* phase, runs however the others ended,
so that records are always completed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from vmtune.errors import SetupError

Phase = Callable[[str], Awaitable[None]]
"""One phase of a job, called with the job's id on the service's event loop.

A phase that completed is never repeated; one that was interrupted by the end
of the service (stop or kill -9) is repeated from its beginning at the next
start. So a phase reads its own record, queries QEMU or libvirt, and continues from there.

:class:`asyncio.CancelledError` inside a phase means either that the job was
cancelled or that the service stops, and the phase cannot distinguish them: release what is local
(connections, tasks) and do not undo the work. Undoing belongs in
the final phase, which runs after a cancellation and not when the service stops.
"""


Instrument = Callable[[str, str, Phase], Phase]
"""Given a job's kind and a phase with its name, returns the phase that runs instead."""


class JobStatus(StrEnum):
    QUEUED = "queued"
    """Recorded; also after a restart, not yet running."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """A phase raised; the final phase has run."""
    CANCELLED = "cancelled"
    """Cut short by :meth:`JobEngine.cancel`; the final phase has run."""

    @property
    def ended(self) -> bool:
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class JobState:
    """What the engine knows of a job.

    :param error: why it failed, in words for a user; empty unless failed.
    """

    job_id: str
    kind: str
    status: JobStatus
    error: str = ""


class JobEngine(Protocol):
    """Runs jobs. All methods belong to the event loop that called ``start``.

    Every method but ``register`` and ``stop`` raises
    :class:`~vmtune.errors.SetupError` while the engine is not started, and when
    the jobs' database fails.
    """

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        """Give a kind of job its phases; the last is the final phase.

        Keep the names when phases change: a job that was begun under other names fails at the first
        unknown name, and then runs the present final phase.

        :raise ValueError: if the kind is known already, has no phases, or a name occurs twice.
        :raise RuntimeError: after ``start``.
        """

    def instrument(self, with_: Instrument) -> None:
        """Instrument the phases that are registered from now on."""

    async def start(self) -> None:
        """Begin to run jobs, and resume those that a stop or a death interrupted.

        :raise SetupError: when the jobs' database cannot be used; names it.
        :raise RuntimeError: when started already.
        """

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        """Record a job and run it. It is durable once this returns.

        Submitting an id again does nothing, also after the job has ended.

        :param on: the host that it concerns: where several services share the work, the one that
            manages this host runs it. Empty for this service.
        :raise NotFound: when no such kind is registered.
        """

    async def cancel(self, job_id: str) -> bool:
        """Cancel a job: its running phase is cancelled, the phases
        after it are skipped, and the final phase runs.

        The request is durable once this returns. If the last phase before the final one completes
        all the same, the job ends as without the request.

        :return: False when there is nothing left to cancel: the job has ended
            or is in its final phase, which is never cancelled.
        :raise NotFound: when there is no such job.
        """

    async def is_active(self, job_id: str) -> bool:
        """Whether a job runs here, or waits for another service; False if it has ended or is
        unknown."""

    async def state(self, job_id: str) -> JobState:
        """:raise NotFound: when there is no such job."""

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        """Wait until the job has ended.

        :return: its state; the state so far when ``timeout_s`` seconds pass first.
        :raise NotFound: when there is no such job.
        :raise SetupError: when the engine is stopped meanwhile.
        """

    async def stop(self) -> None:
        """Stop running jobs; unfinished ones resume at the next start.

        Running phases are cancelled. Returns in about two seconds also when
        they do not react. Does nothing when not started.
        """


def not_started() -> SetupError:
    return SetupError(
        "the job engine is not running",
        code="jobs_not_running",
        remedy="the service is starting or stopping; try again when it runs",
    )
