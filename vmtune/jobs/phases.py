"""Runs the phases of jobs as tasks of one event loop; shared by all engines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from vmtune.errors import VmtuneError
from vmtune.jobs.base import Instrument, JobStatus, Phase

log = logging.getLogger(__name__)


class StoredOutcome(TypedDict):
    """An outcome as JSON, as the jobs' database has it."""

    status: str
    error: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a phase, or a whole job, ended."""

    status: JobStatus
    error: str = ""

    @classmethod
    def load(cls, stored: StoredOutcome) -> Outcome:
        return cls(JobStatus(stored["status"]), stored["error"])

    def dump(self) -> StoredOutcome:
        return {"status": self.status.value, "error": self.error}


SUCCEEDED = Outcome(JobStatus.SUCCEEDED)
CANCELLED = Outcome(JobStatus.CANCELLED)


async def run_in_order(
    names: Sequence[str], run: Callable[[str, bool], Awaitable[Outcome]]
) -> Outcome:
    """Run phases until one does not succeed, then the final one in any case.

    :param run: runs the named phase; its second argument says whether final.
    :return: the first outcome that is not a success; a failure of the final phase makes the job
        fail, and is added to an earlier error.
    """
    *body, final = names
    outcome = SUCCEEDED
    for name in body:
        outcome = await run(name, False)
        if outcome != SUCCEEDED:
            break
    finalized = await run(final, True)
    if finalized == SUCCEEDED:
        return outcome
    errors = [outcome.error, finalized.error]
    return Outcome(JobStatus.FAILED, "; then: ".join(filter(None, errors)))


@dataclass(frozen=True, slots=True)
class _Running:
    final: bool
    task: asyncio.Task[None]


class PhaseRunner:
    """The registered phases, and those that are running."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Phase]] = {}
        self._running: dict[str, _Running] = {}
        self._cancel_requested: set[str] = set()
        self._stopping = False
        self.instrument: Instrument = lambda kind, name, phase: phase

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        if kind in self._kinds:
            raise ValueError(f"job kind {kind!r} is registered already")
        if not phases:
            raise ValueError(f"job kind {kind!r} has no phases")
        by_name = {name: self.instrument(kind, name, phase) for name, phase in phases}
        if len(by_name) != len(phases):
            raise ValueError(f"job kind {kind!r} has two phases of one name")
        self._kinds[kind] = by_name

    def names(self, kind: str) -> list[str] | None:
        """The names of a kind's phases in order; None for an unknown kind."""
        phases = self._kinds.get(kind)
        return None if phases is None else list(phases)

    @property
    def kinds(self) -> list[str]:
        """The registered kinds."""
        return list(self._kinds)

    @property
    def busy(self) -> bool:
        """Whether a phase is running."""
        return bool(self._running)

    def start(self) -> None:
        self._stopping = False

    async def run(self, kind: str, job_id: str, name: str, final: bool) -> Outcome:
        """Run one phase of a job.

        :raise CancelledError: when interrupted by :meth:`stop`: the phase has no outcome and will
            be repeated.
        """
        if self._stopping:
            raise asyncio.CancelledError
        if not final and job_id in self._cancel_requested:
            return CANCELLED
        phase = self._phase(kind, name, final)
        if phase is None:
            return Outcome(JobStatus.FAILED, f"{kind}: this version has no phase {name!r}")
        task = asyncio.create_task(_as_coroutine(phase, job_id), name=f"{kind} {job_id}: {name}")
        self._running[job_id] = _Running(final, task)
        try:
            # Not awaited directly: that would raise its CancelledError as ours.
            await asyncio.wait({task})
        finally:
            del self._running[job_id]
            if final:
                self._cancel_requested.discard(job_id)
        return self._outcome(task, cancelled=job_id in self._cancel_requested)

    def _phase(self, kind: str, name: str, final: bool) -> Phase | None:
        phases = self._kinds.get(kind, {})
        if final and phases:
            return list(phases.values())[-1]
        return phases.get(name)

    def _outcome(self, task: asyncio.Task[None], *, cancelled: bool) -> Outcome:
        error = None if task.cancelled() else task.exception()
        if self._stopping and (error is not None or task.cancelling()):
            # What an interrupted phase returned or raised says nothing about the work.
            raise asyncio.CancelledError
        if task.cancelled():
            return CANCELLED if cancelled else Outcome(JobStatus.FAILED, "it was cancelled inside")
        if error is None:
            return SUCCEEDED
        if isinstance(error, VmtuneError):
            return Outcome(JobStatus.FAILED, str(error))
        log.error("unexpected error in %s", task.get_name(), exc_info=error)
        return Outcome(JobStatus.FAILED, f"{type(error).__name__}: {error}")

    def cancel(self, job_id: str) -> None:
        """Cancel the job's running phase and skip the next ones, but for the final one."""
        if self.in_final_phase(job_id) or job_id in self._cancel_requested:
            return
        self._cancel_requested.add(job_id)
        if job_id in self._running:
            self._running[job_id].task.cancel()

    def in_final_phase(self, job_id: str) -> bool:
        running = self._running.get(job_id)
        return running is not None and running.final

    async def stop(self, grace_s: float) -> None:
        """Cancel all running phases and let them clean up for ``grace_s`` seconds."""
        self._stopping = True
        tasks = {running.task for running in self._running.values()}
        for task in tasks:
            task.cancel()
        if tasks:
            _, hanging = await asyncio.wait(tasks, timeout=grace_s)
            for task in hanging:
                log.warning("did not react to being stopped: %s", task.get_name())


async def _as_coroutine(phase: Phase, job_id: str) -> None:
    await phase(job_id)
