"""The durable job engine, on dbos.

Each job is one dbos workflow and each phase one step of it, so dbos records
which phases are done. dbos's workflows run on a loop in a thread of their own:
dbos replaces the default executor of any loop it runs on by one that dies with
it. The phases themselves run on the loop that called ``start``, where drivers
and locks live. A waiting job holds no thread.

dbos is a singleton of the process, so one engine can be started at a time.
Importing this module takes most of a second and 50 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextvars import Context
from typing import Protocol, TypeVar

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowStatus, _dbos
from dbos import error as dbos_error
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from vmtune.errors import NotFound, SetupError
from vmtune.jobs.base import JobState, JobStatus, Phase, not_started
from vmtune.jobs.continuing import (
    CANCEL_REQUESTED,
    CONTINUED,
    Left,
    StoredOutcome,
    cancelled_jobs,
    end_attempt,
    latest,
    left_by,
    note_continued,
)
from vmtune.jobs.database import JobsDatabase, database_failed, open_database
from vmtune.jobs.loopthread import LoopThread, run_on
from vmtune.jobs.phases import Outcome, PhaseRunner, run_in_order

log = logging.getLogger(__name__)

T = TypeVar("T")

STOP_GRACE_S = 1.0
DESTROY_TIMEOUT_S = 1.0
CANCEL_TIMEOUT_S = 0.5
POLL_INTERVAL_S = 0.25
"""How often ``wait`` looks at a job whose end it was not told of."""
CANCEL_SEEN_WITHIN_S = 0.5
"""How often a service looks whether another was asked to cancel a job of its own."""
RECORD_INTERVAL_S = 0.005
"""How often it looks once the job's phases have ended: recording takes some ms."""

# Changed only when _workflow takes its steps in another order: dbos resumes
# only what was begun under the same version.
WORKFLOW_VERSION = "1"
# Deaths of the service during one job before dbos gives it up, so that a phase
# that kills the service does not do so for ever.
MAX_RESUMPTIONS = 100

# Of dbos's delayed starts and time limits, and of its schedules. Its queues are left: what it
# resumes at its start goes through one.
_POLLERS = ("background_jobs_thread", "dynamic_scheduler_loop")

# Held by the engine that is started, since dbos can be used once in a process.
_dbos_in_use = threading.Lock()


class _Workflow(Protocol):
    async def __call__(
        self,
        kind: str,
        job_id: str,
        names: list[str],
        done: dict[str, StoredOutcome] | None = None,
    ) -> StoredOutcome: ...


class DurableEngine:
    """Implements :class:`vmtune.jobs.base.JobEngine` on a database.

    :param url: ``sqlite:////path/to/file`` for a file of its own (the folder
        must exist), or ``postgresql://...``, where schema ``dbos`` is made and
        the jobs begun on a host of this name are resumed.
    :param worker: the name under which this service has its jobs, where several share a
        PostgreSQL database; empty for the name of this machine.
    """

    def __init__(self, url: str, worker: str = "") -> None:
        self._url = url
        self._worker = worker
        self._watching: asyncio.Task[None] | None = None
        self._runner = PhaseRunner()
        self._database: JobsDatabase | None = None
        self._dbos_loop: LoopThread | None = None
        self._workflow: _Workflow | None = None
        self._ended: dict[str, asyncio.Event] = {}
        self._carried: set[str] = set()

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        if self._dbos_loop is not None:
            raise RuntimeError("register before start")
        self._runner.register(kind, phases)

    async def start(self) -> None:
        if not _dbos_in_use.acquire(blocking=False):
            raise RuntimeError("a durable job engine is started already")
        try:
            database = await asyncio.to_thread(open_database, self._url, self._worker)
        except BaseException:
            _dbos_in_use.release()
            raise
        self._database = database
        self._runner.start()
        self._dbos_loop = LoopThread("vmtune-jobs")
        launch = self._launch(database, asyncio.get_running_loop())
        try:
            self._workflow = await _call(self._dbos_loop, database, launch)
        except BaseException:
            await self._shut_down()
            raise
        if database.shared:
            self._watching = asyncio.create_task(self._watch_cancels(), name="watch cancels")

    async def _launch(
        self, database: JobsDatabase, service_loop: asyncio.AbstractEventLoop
    ) -> _Workflow:
        # With a handler present dbos adds none of its own to the console.
        dbos_log = logging.getLogger("dbos")
        if not dbos_log.handlers:
            dbos_log.addHandler(logging.NullHandler())
        DBOS(config=_config(database))
        workflow = DBOS.workflow(name="vmtune.job", max_recovery_attempts=MAX_RESUMPTIONS)(
            self._make_workflow(service_loop)
        )
        # Blocks this loop on purpose: dbos adopts the running loop of the
        # thread that launches it, and nothing else runs here yet.
        with _without_pollers():
            DBOS.launch()
        # Only now: launch reports failures twice, raised and logged.
        dbos_log.setLevel(logging.ERROR)
        return workflow

    def _make_workflow(self, service_loop: asyncio.AbstractEventLoop) -> _Workflow:
        async def run_phase(kind: str, job_id: str, name: str, final: bool) -> StoredOutcome:
            outcome = await run_on(service_loop, self._runner.run(kind, job_id, name, final))
            return {"status": outcome.status.value, "error": outcome.error}

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
                    return Outcome(JobStatus(done[name]["status"]), done[name]["error"])
                stored = await DBOS.run_step_async(
                    {"name": name}, run_phase, kind, job_id, name, final
                )
                return Outcome(JobStatus(stored["status"]), stored["error"])

            self._carried.add(job_id)  # atomic, from any thread
            try:
                # In a task, and so outside the workflow: not a step of it.
                if await asyncio.create_task(_cancel_requested(job_id), context=Context()):
                    service_loop.call_soon_threadsafe(self._runner.cancel, job_id)
                outcome = await run_in_order(names, run)
            finally:
                self._carried.discard(job_id)
                with contextlib.suppress(RuntimeError):  # the service's loop has ended
                    service_loop.call_soon_threadsafe(self._note_end, job_id)
            return {"status": outcome.status.value, "error": outcome.error}

        return workflow

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        dbos_loop, database, workflow = self._require_started()
        names = self._runner.names(kind)
        if names is None:
            raise NotFound(f"there is no job kind {kind!r}")

        async def start() -> None:
            with SetWorkflowID(job_id):
                await DBOS.start_workflow_async(workflow, kind, job_id, names)

        await _call(dbos_loop, database, start())

    async def cancel(self, job_id: str) -> bool:
        dbos_loop, database, _ = self._require_started()
        state = await self.state(job_id)
        if state.status.ended or self._runner.in_final_phase(job_id):
            return False
        # Not dbos's own cancel: that would end the workflow before its final phase.
        await _call(dbos_loop, database, _request_cancel(job_id))
        self._runner.cancel(job_id)
        return True

    async def _watch_cancels(self) -> None:
        """Cancel what another service was asked to cancel."""
        while True:
            await asyncio.sleep(CANCEL_SEEN_WITHIN_S)
            if not self._runner.busy:
                continue
            try:
                dbos_loop, database, _ = self._require_started()
                found = await _call(dbos_loop, database, cancelled_jobs(database.worker))
            except SetupError as error:  # the server may come back
                log.info("not seen whether a job is to be cancelled: %s", error.message)
                continue
            for job_id in found:
                self._runner.cancel(job_id)

    async def take_over(
        self, dead: str, mine: Callable[[str, str], Awaitable[bool]]
    ) -> list[tuple[str, str]]:
        """Go on with the unfinished jobs of a service that died. Harmless when repeated.

        :param mine: whether a job, by its kind and id, is one that this service can carry.
        :return: the jobs that go on here now, by kind and id.
        """
        dbos_loop, database, workflow = self._require_started()
        left = await _call(dbos_loop, database, left_by(dead, self._runner.kinds))
        taken: list[tuple[str, str]] = []
        for one in left:
            if not await mine(one.kind, one.job_id):
                continue

            async def go_on(one: Left = one) -> None:
                await end_attempt(one)
                with SetWorkflowID(one.next_workflow):
                    await DBOS.start_workflow_async(
                        workflow, one.kind, one.job_id, one.names, one.done
                    )
                await note_continued(one)

            await _call(dbos_loop, database, go_on())
            taken.append((one.kind, one.job_id))
            if one.cancelled:
                await self.cancel(one.job_id)
        return taken

    async def carries(self, job_id: str) -> bool:
        return job_id in self._carried

    async def state(self, job_id: str) -> JobState:
        dbos_loop, database, _ = self._require_started()
        found = await _call(dbos_loop, database, latest(job_id))
        if found is None:
            raise NotFound(f"there is no job {job_id!r}")
        return _job_state(job_id, found)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        loop = asyncio.get_running_loop()
        give_up = None if timeout_s is None else loop.time() + timeout_s
        ended: asyncio.Event | None = None
        while True:
            state = await self.state(job_id)
            left = POLL_INTERVAL_S if give_up is None else give_up - loop.time()
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
        if self._dbos_loop is None:
            return
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
            self._watching = None
        await self._runner.stop(STOP_GRACE_S)
        await self._shut_down()

    async def _shut_down(self) -> None:
        dbos_loop, database = self._dbos_loop, self._database
        assert dbos_loop is not None
        assert database is not None
        self._dbos_loop = self._workflow = self._database = None
        self._ended.clear()
        # dbos leaves workflows that are cut this way unfinished.
        await dbos_loop.cancel_all(CANCEL_TIMEOUT_S)
        loop = asyncio.get_running_loop()
        destroyed = asyncio.Event()

        def destroy() -> None:
            try:
                DBOS.destroy(destroy_registry=True)
            finally:
                dbos_loop.close()
                database.close()
                _dbos_in_use.release()
                with contextlib.suppress(RuntimeError):  # that loop has ended
                    loop.call_soon_threadsafe(destroyed.set)

        # In a daemon thread: it waits for each of dbos's threads, and those may
        # wait for a database server that is gone.
        threading.Thread(target=destroy, name="vmtune-jobs-stop", daemon=True).start()
        try:
            await asyncio.wait_for(destroyed.wait(), DESTROY_TIMEOUT_S)
        except TimeoutError:
            log.warning("the jobs' database %s is slow to close", database.shown)

    def _require_started(self) -> tuple[LoopThread, JobsDatabase, _Workflow]:
        if self._dbos_loop is None or self._database is None or self._workflow is None:
            raise not_started()
        return self._dbos_loop, self._database, self._workflow


@contextlib.contextmanager
def _without_pollers() -> Iterator[None]:
    """Have dbos start no thread that asks the database each second for what vmtune does not use.
    A dbos that names them otherwise only costs more."""
    real = {name: value for name in _POLLERS if (value := getattr(_dbos, name, None)) is not None}
    try:
        for name in real:
            setattr(_dbos, name, lambda *_: None)
        yield
    finally:
        for name, value in real.items():
            setattr(_dbos, name, value)


async def _call(
    dbos_loop: LoopThread, database: JobsDatabase, work: Coroutine[object, object, T]
) -> T:
    """Run ``work`` on dbos's loop; :raise SetupError: when the database fails."""
    try:
        return await dbos_loop.call(work)
    except DBAPIError as error:
        raise database_failed(database.shown, error.orig) from error
    except (dbos_error.DBOSException, SQLAlchemyError) as error:
        raise database_failed(database.shown, error) from error


async def _request_cancel(job_id: str) -> None:
    found = await latest(job_id)
    workflow = found.workflow_id if found is not None else job_id
    await DBOS.update_workflow_attributes_async(workflow, {CANCEL_REQUESTED: True}, merge=True)


async def _cancel_requested(job_id: str) -> bool:
    found = await latest(job_id)
    return bool(found and (found.attributes or {}).get(CANCEL_REQUESTED))


def _job_state(job_id: str, found: WorkflowStatus) -> JobState:
    kind = str(found.input["args"][0]) if found.input else ""
    match found.status:
        case "ENQUEUED" | "DELAYED":
            return JobState(job_id, kind, JobStatus.QUEUED)
        case "PENDING":
            return JobState(job_id, kind, JobStatus.RUNNING)
        case "SUCCESS":
            assert found.output is not None
            stored: StoredOutcome = found.output
            return JobState(job_id, kind, JobStatus(stored["status"]), stored["error"])
        case "CANCELLED" if (found.attributes or {}).get(CONTINUED):
            return JobState(job_id, kind, JobStatus.QUEUED)  # its next attempt is being begun
        case "CANCELLED":
            return JobState(job_id, kind, JobStatus.CANCELLED)
        case "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
            error = f"given up: the service died {MAX_RESUMPTIONS} times during it"
            return JobState(job_id, kind, JobStatus.FAILED, error)
        case _:
            return JobState(job_id, kind, JobStatus.FAILED, str(found.error))


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
        # Threads only read and write the database; jobs hold none.
        "max_executor_threads": 8,
        "sys_db_pool_size": 12,
        # Both serve messages between workflows, which vmtune does not use:
        # LISTEN costs a connection and wakes up 100 times a second.
        "use_listen_notify": False,
        "notification_listener_polling_interval_sec": 0.2,
    }
