"""Takeover: another service resumes the jobs of one that died.

Each attempt at a job is a dbos workflow of its own: the first has the job's id, the next ones
``ID~2``, ``ID~3``. A takeover first cancels the attempt of the dead service, which dbos does for
good: a service that only seemed dead can record no further step of it. The next attempt gets the
outcomes of the completed phases, and does not repeat them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from dbos import DBOS, WorkflowStatus

from vmtune.jobs.phases import StoredOutcome

# Attributes of a workflow.
CANCEL_REQUESTED = "cancel_requested"
NEXT_ATTEMPT = "next_attempt"
_TAKEOVER_OPEN = "takeover_open"

_SEPARATOR = "~"
_UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A job that a service has not finished.

    :param workflow: its last attempt.
    :param names: the phases with which it was begun.
    :param done: outcomes of completed phases, by name.
    :param cancelled: a cancel was requested.
    """

    workflow: str
    kind: str
    job_id: str
    names: list[str]
    done: dict[str, StoredOutcome]
    cancelled: bool

    @property
    def next_workflow(self) -> str:
        """The id of the attempt after this one."""
        _, _, number = self.workflow.partition(_SEPARATOR)
        return f"{self.job_id}{_SEPARATOR}{int(number or 1) + 1}"


def job_of(workflow: str) -> str:
    """The id of the job that a workflow is an attempt at."""
    return workflow.partition(_SEPARATOR)[0]


def attributes_of(status: WorkflowStatus) -> Mapping[str, object]:
    """What vmtune has noted on a workflow."""
    return status.attributes or {}


async def last_attempt(job_id: str) -> WorkflowStatus | None:
    """The last attempt at a job; None where there is no such job."""
    status = await DBOS.get_workflow_status_async(job_id)
    while status is not None and (following := attributes_of(status).get(NEXT_ATTEMPT)):
        next_status = await DBOS.get_workflow_status_async(str(following))
        if next_status is None:  # a takeover is about to begin it
            return status
        status = next_status
    return status


async def cancelled_jobs(worker: str) -> list[str]:
    """The unfinished jobs of a service that any service was asked to cancel."""
    listed = await DBOS.list_workflows_async(
        status=_UNFINISHED,
        executor_id=worker,
        attributes={CANCEL_REQUESTED: True},
        load_input=False,
        load_output=False,
    )
    return [job_of(status.workflow_id) for status in listed]


async def unfinished_jobs(worker: str, kinds: Collection[str]) -> list[UnfinishedJob]:
    """The unfinished jobs of a service; among them those that another service began to take over
    when it died, too."""
    listed = await DBOS.list_workflows_async(
        status=_UNFINISHED, executor_id=worker, load_output=False
    )
    listed += await DBOS.list_workflows_async(
        status="CANCELLED", executor_id=worker, attributes={_TAKEOVER_OPEN: True}, load_output=False
    )
    jobs: list[UnfinishedJob] = []
    for status in listed:
        args = status.input["args"] if status.input else ()
        if len(args) < 3 or args[0] not in kinds:
            continue
        kind, job_id, names = args[:3]
        done = dict(cast(Mapping[str, StoredOutcome], args[3])) if len(args) > 3 else {}
        for step in await DBOS.list_workflow_steps_async(status.workflow_id):
            if step["error"] is None and step["function_name"] in names:
                done[step["function_name"]] = cast(StoredOutcome, step["output"])
        cancelled = bool(attributes_of(status).get(CANCEL_REQUESTED))
        jobs.append(UnfinishedJob(status.workflow_id, kind, job_id, names, done, cancelled))
    return jobs


async def begin_takeover(job: UnfinishedJob) -> None:
    """End a job's last attempt for good, and note which one is the next."""
    note = {NEXT_ATTEMPT: job.next_workflow, _TAKEOVER_OPEN: True}
    await DBOS.update_workflow_attributes_async(job.workflow, note, merge=True)
    await DBOS.cancel_workflow_async(job.workflow)


async def end_takeover(job: UnfinishedJob) -> None:
    """Note that the next attempt runs."""
    note = {_TAKEOVER_OPEN: False}
    await DBOS.update_workflow_attributes_async(job.workflow, note, merge=True)
