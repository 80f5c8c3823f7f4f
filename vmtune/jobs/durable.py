"""The durable job engine, on dbos (docs/adr/0010-durable-jobs.md).

Each job is one dbos workflow and each phase one step of it, so dbos records
which phases are done. dbos's workflows run on a loop in a thread of their own:
dbos replaces the default executor of any loop that calls it by one that dies
with it. The phases themselves run on the loop that called ``start``, where
drivers and locks live. A waiting job holds no thread.

dbos is a singleton of the process, so one engine can be started at a time.
Importing this module takes most of a second and 25 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import TypeVar

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowStatus, _dbos
from dbos import error as dbos_error
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from vmtune.errors import NotFound, SetupError
from vmtune.jobs import takeover
from vmtune.jobs.base import Instrument, JobState, JobStatus, Phase, not_started
from vmtune.jobs.database import (
    JobsConnection,
    JobsDatabase,
    database_failed,
    open_database,
)
from vmtune.jobs.loop_thread import LoopThread, run_on
from vmtune.jobs.phases import Outcome, PhaseRunner, StoredOutcome, run_in_order

log = logging.getLogger(__name__)

T = TypeVar("T")
Workflow = Callable[..., Coroutine[object, object, StoredOutcome]]

STOP_GRACE_S = 1.0
DESTROY_TIMEOUT_S = 1.0
CANCEL_TIMEOUT_S = 0.5
POLL_INTERVAL_S = 0.25
"""How often ``wait`` reads the state of a job that ends in another service."""
CANCEL_POLL_INTERVAL_S = 0.5
"""How often a service reads which of its jobs another was asked to cancel."""
RECORD_INTERVAL_S = 0.005
"""How often ``wait`` reads the state once the phases have ended: recording takes some ms."""

# Changed only when the workflow takes its steps in another order: dbos resumes
# only what was begun under the same version.
WORKFLOW_VERSION = "1"
# Deaths of the service during one job after which dbos gives the job up, so that a phase that kills
# the service does not repeat without end.
MAX_RESUMPTIONS = 100

# Held by the engine that is started, since dbos can be used once in a process.
_dbos_in_use = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Dbos:
    """dbos while it runs.

    :param loop: its workflows run there, and it is called there.
    """

    database: JobsDatabase
    loop: LoopThread

    async def call(self, work: Coroutine[object, object, T]) -> T:
        """Run *work* on dbos's loop; :raise SetupError: when the database fails."""
        try:
            return await self.loop.call(work)
        except DBAPIError as error:
            raise database_failed(self.database.shown, error.orig) from error
        except (dbos_error.DBOSException, SQLAlchemyError) as error:
            raise database_failed(self.database.shown, error) from error


class DurableEngine:
    """Implements :class:`vmtune.jobs.base.JobEngine` on a database.

    :param url: ``sqlite:////path/to/file`` for a file of its own (the folder
        must exist), or ``postgresql://...``, where schema ``dbos`` is made and jobs begun on a host
        of this name are resumed.
    :param worker: the name under which this service has its jobs, where several share a
        PostgreSQL database; empty for the name of this machine.
    """

    def __init__(self, url: str, worker: str = "") -> None:
        self._url = url
        self._worker = worker
        self._runner = PhaseRunner()
        self._started: _Dbos | None = None
        self._workflow: Workflow | None = None
        self._cancel_watch: asyncio.Task[None] | None = None
        self._ended: dict[str, asyncio.Event] = {}
        self._active: set[str] = set()

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        if self._started is not None:
            raise RuntimeError("register before start")
        self._runner.register(kind, phases)

    def instrument(self, with_: Instrument) -> None:
        self._runner.instrument = with_

    async def start(self) -> None:
        if not _dbos_in_use.acquire(blocking=False):
            raise RuntimeError("a durable job engine is started already")
        try:
            database = await asyncio.to_thread(open_database, self._url, self._worker)
        except BaseException:
            _dbos_in_use.release()
            raise
        self._runner.start()
        self._started = dbos = _Dbos(database, LoopThread("vmtune-jobs"))
        workflow = self._make_workflow(asyncio.get_running_loop())
        try:
            self._workflow = await dbos.call(_launch(database, workflow))
        except BaseException:
            await self._shut_down(dbos)
            raise
        if database.shared:
            self._cancel_watch = asyncio.create_task(self._watch_cancels(dbos))

    def _make_workflow(self, service_loop: asyncio.AbstractEventLoop) -> Workflow:
        async def run_phase(kind: str, job_id: str, name: str, final: bool) -> StoredOutcome:
            outcome = await run_on(service_loop, self._runner.run(kind, job_id, name, final))
            return outcome.dump()

        # The names are stored with the job, not taken from what is registered
        # now: dbos replays a workflow by the order and names of its steps.
        async def workflow(
            kind: str,
            job_id: str,
            names: list[str],
            done: dict[str, StoredOutcome] | None = None,
        ) -> StoredOutcome:
            async def run(name: str, final: bool) -> Outcome:
                if done and name in done:  # in an earlier attempt
                    return Outcome.load(done[name])
                return Outcome.load(
                    await DBOS.run_step_async({"name": name}, run_phase, kind, job_id, name, final)
                )

            self._active.add(job_id)  # atomic, from any thread
            try:
                # In a task, so outside the workflow: not one of its steps.
                if await asyncio.create_task(_is_cancel_requested(job_id), context=Context()):
                    service_loop.call_soon_threadsafe(self._runner.cancel, job_id)
                outcome = await run_in_order(names, run)
            finally:
                self._active.discard(job_id)
                with contextlib.suppress(RuntimeError):  # the service's loop has ended
                    service_loop.call_soon_threadsafe(self._note_end, job_id)
            return outcome.dump()

        return workflow

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        dbos, workflow = self._require_started()
        names = self._runner.names(kind)
        if names is None:
            raise NotFound(f"there is no job kind {kind!r}")
        await dbos.call(_begin(workflow, job_id, kind, job_id, names))

    async def cancel(self, job_id: str) -> bool:
        dbos, _ = self._require_started()
        state = await self.state(job_id)
        if state.status.ended or self._runner.in_final_phase(job_id):
            return False
        # Not dbos's own cancel: that would end the workflow before its final phase.
        await dbos.call(_request_cancel(job_id))
        self._runner.cancel(job_id)
        return True

    async def _watch_cancels(self, dbos: _Dbos) -> None:
        """Cancel here what another service was asked to cancel."""
        while True:
            await asyncio.sleep(CANCEL_POLL_INTERVAL_S)
            if not self._runner.busy:
                continue
            try:
                cancelled = await dbos.call(takeover.cancelled_jobs(dbos.database.worker))
            except SetupError as error:  # the server may come back
                log.info("cannot read which jobs are to be cancelled: %s", error.message)
                continue
            for job_id in cancelled:
                self._runner.cancel(job_id)

    async def take_over(
        self, dead: str, can_run: Callable[[str, str], Awaitable[bool]]
    ) -> list[tuple[str, str]]:
        """Resume the unfinished jobs of a service that died. Harmless when repeated.

        :param can_run: whether a job, by its kind and id, is one that this service can run.
        :return: the jobs that run here now, by kind and id.
        """
        dbos, workflow = self._require_started()
        taken: list[tuple[str, str]] = []
        for job in await dbos.call(takeover.unfinished_jobs(dead, self._runner.kinds)):
            if not await can_run(job.kind, job.job_id):
                continue
            await dbos.call(_take_over(workflow, job))
            taken.append((job.kind, job.job_id))
            if job.cancelled:
                await self.cancel(job.job_id)
        return taken

    async def is_active(self, job_id: str) -> bool:
        return job_id in self._active

    async def state(self, job_id: str) -> JobState:
        dbos, _ = self._require_started()
        status = await dbos.call(takeover.last_attempt(job_id))
        if status is None:
            raise NotFound(f"there is no job {job_id!r}")
        return _job_state(job_id, status)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        ended: asyncio.Event | None = None
        while True:
            state = await self.state(job_id)
            left = POLL_INTERVAL_S if deadline is None else deadline - loop.time()
            if state.status.ended or left <= 0:
                return state
            if ended is None:
                ended = self._ended.setdefault(job_id, asyncio.Event())
            if ended.is_set():
                await asyncio.sleep(RECORD_INTERVAL_S)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), min(POLL_INTERVAL_S, left))

    def _note_end(self, job_id: str) -> None:
        ended = self._ended.pop(job_id, None)
        if ended is not None:
            ended.set()

    async def stop(self) -> None:
        if self._started is None:
            return
        if self._cancel_watch is not None:
            self._cancel_watch.cancel()
            await asyncio.wait({self._cancel_watch})
            self._cancel_watch = None
        await self._runner.stop(STOP_GRACE_S)
        await self._shut_down(self._started)

    async def _shut_down(self, dbos: _Dbos) -> None:
        self._started = self._workflow = None
        self._ended.clear()
        # dbos leaves workflows that are cut this way unfinished.
        await dbos.loop.cancel_all(CANCEL_TIMEOUT_S)
        loop = asyncio.get_running_loop()
        destroyed = asyncio.Event()

        def destroy() -> None:
            try:
                DBOS.destroy(destroy_registry=True)
            finally:
                dbos.loop.close()
                dbos.database.close()
                _dbos_in_use.release()
                with contextlib.suppress(RuntimeError):  # that loop has ended
                    loop.call_soon_threadsafe(destroyed.set)

        # In a daemon thread: it waits for each of dbos's threads, which may wait for a database
        # server that is gone.
        threading.Thread(target=destroy, name="vmtune-jobs-stop", daemon=True).start()
        try:
            await asyncio.wait_for(destroyed.wait(), DESTROY_TIMEOUT_S)
        except TimeoutError:
            log.warning("the jobs' database %s is slow to close", dbos.database.shown)

    def _require_started(self) -> tuple[_Dbos, Workflow]:
        if self._started is None or self._workflow is None:
            raise not_started()
        return self._started, self._workflow


async def _launch(database: JobsDatabase, workflow: Workflow) -> Workflow:
    """Start dbos, which resumes this service's jobs.

    Blocks its loop on purpose: dbos adopts the running loop of the thread that launches it, and
    nothing else runs there yet.
    """
    # With a handler present dbos adds none of its own to the console.
    dbos_log = logging.getLogger("dbos")
    if not dbos_log.handlers:
        dbos_log.addHandler(logging.NullHandler())
    DBOS(config=_config(database))
    registered = DBOS.workflow(name="vmtune.job", max_recovery_attempts=MAX_RESUMPTIONS)(workflow)
    with _without_background_jobs():
        DBOS.launch()
    # Only now: launch reports failures twice, raised and logged.
    dbos_log.setLevel(logging.ERROR)
    return registered


@contextlib.contextmanager
def _without_background_jobs() -> Iterator[None]:
    """Have dbos start no thread that asks the database each second for delayed starts and time
    limits, which vmtune does not use: it doubles what an idle service costs. dbos 3.4 has no
    setting for it; a dbos that names the thread's function otherwise only costs more."""
    name = "background_jobs_thread"
    real = getattr(_dbos, name, None)
    if real is None:
        yield
        return
    setattr(_dbos, name, lambda *_: None)
    try:
        yield
    finally:
        setattr(_dbos, name, real)


async def _begin(workflow: Workflow, workflow_id: str, *args: object) -> None:
    with SetWorkflowID(workflow_id):
        await DBOS.start_workflow_async(workflow, *args)


async def _take_over(workflow: Workflow, job: takeover.UnfinishedJob) -> None:
    await takeover.begin_takeover(job)
    await _begin(workflow, job.next_workflow, job.kind, job.job_id, job.names, job.done)
    await takeover.end_takeover(job)


async def _request_cancel(job_id: str) -> None:
    last = await takeover.last_attempt(job_id)
    workflow = last.workflow_id if last is not None else job_id
    note = {takeover.CANCEL_REQUESTED: True}
    await DBOS.update_workflow_attributes_async(workflow, note, merge=True)


async def _is_cancel_requested(job_id: str) -> bool:
    last = await takeover.last_attempt(job_id)
    return last is not None and bool(takeover.attributes_of(last).get(takeover.CANCEL_REQUESTED))


_STATUSES = {
    "ENQUEUED": JobStatus.QUEUED,
    "DELAYED": JobStatus.QUEUED,
    "PENDING": JobStatus.RUNNING,
    "CANCELLED": JobStatus.CANCELLED,
}
"""Ours for those of dbos; a job that has another one has failed."""


def _job_state(job_id: str, last: WorkflowStatus) -> JobState:
    kind = str(last.input["args"][0]) if last.input else ""
    if last.status == "SUCCESS":
        stored: StoredOutcome = last.output  # type: ignore[assignment] # what the workflow returns
        outcome = Outcome.load(stored)
        return JobState(job_id, kind, outcome.status, outcome.error)
    if last.status == "CANCELLED" and takeover.NEXT_ATTEMPT in takeover.attributes_of(last):
        return JobState(job_id, kind, JobStatus.QUEUED)  # a takeover is about to begin the next
    if last.status in _STATUSES:
        return JobState(job_id, kind, _STATUSES[last.status])
    error = str(last.error)
    if last.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        error = f"given up: the service died {MAX_RESUMPTIONS} times during it"
    return JobState(job_id, kind, JobStatus.FAILED, error)


def _for_sqlite(database: JobsDatabase) -> DBOSConfig:
    if not database.url.startswith("sqlite:"):
        return {}
    return {"db_engine_kwargs": {"connect_args": {"factory": JobsConnection}}}


def _config(database: JobsDatabase) -> DBOSConfig:
    return {
        "name": "vmtune",
        "system_database_url": database.url,
        "application_version": database.version(WORKFLOW_VERSION),
        "executor_id": database.worker,
        # JSON instead of pickle: reading a database must not run code.
        "serializer": DBOSPortableJSONSerializer(),
        "enable_otlp": False,
        "log_level": "CRITICAL",
        **_for_sqlite(database),
        # Threads only read and write the database; jobs hold none.
        "max_executor_threads": 8,
        "sys_db_pool_size": 12,
        # Both serve messages between workflows, which vmtune does not use:
        # LISTEN costs a connection and wakes up 100 times a second.
        "use_listen_notify": False,
        "notification_listener_polling_interval_sec": 0.2,
        # vmtune has no schedules: once a day is as good as never.
        "scheduler_polling_interval_sec": 86_400.0,
    }
