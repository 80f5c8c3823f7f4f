"""Jobs of a service that died, gone on with by another.

Each attempt at a job is a workflow of dbos of its own: the first has the job's id, the next ones
``ID~2``, ``ID~3``. The earlier one is cancelled first, which dbos does for good: a service that
only seemed dead can record no step of it any more, and nothing that it records of a phase under
way is read. Phases that were completed go with the next attempt, and are not repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from dbos import DBOS, WorkflowStatus

CONTINUED = "continued_as"
_TO_BE_CONTINUED = "to_be_continued"
CANCEL_REQUESTED = "cancel_requested"
_SEPARATOR = "~"
_UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]


class StoredOutcome(TypedDict):
    """What dbos stores of a phase or a job, as JSON."""

    status: str
    error: str


@dataclass(frozen=True, slots=True)
class Left:
    """A job that a service has left unfinished.

    :param workflow: its last attempt.
    :param names: the phases that it was begun with.
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
    """The id of the job whose attempt a workflow is."""
    return workflow.partition(_SEPARATOR)[0]


async def latest(job_id: str) -> WorkflowStatus | None:
    """The last attempt at a job; None where there is no such job."""
    found = await DBOS.get_workflow_status_async(job_id)
    while found is not None and (further := _attributes(found).get(CONTINUED)):
        next_one = await DBOS.get_workflow_status_async(str(further))
        if next_one is None:  # it is being begun
            return found
        found = next_one
    return found


async def cancelled_jobs(worker: str) -> list[str]:
    """The unfinished jobs of a service that are to be cancelled, whoever asked for it."""
    found = await DBOS.list_workflows_async(
        status=_UNFINISHED,
        executor_id=worker,
        attributes={CANCEL_REQUESTED: True},
        load_input=False,
        load_output=False,
    )
    return [job_of(one.workflow_id) for one in found]


async def left_by(worker: str, of: Collection[str]) -> list[Left]:
    """The unfinished jobs of a service, of the kinds *of*; and those whose next attempt another
    heir had not begun when it died."""
    found = await DBOS.list_workflows_async(
        status=_UNFINISHED, executor_id=worker, load_output=False
    )
    found += await DBOS.list_workflows_async(
        status="CANCELLED",
        executor_id=worker,
        attributes={_TO_BE_CONTINUED: True},
        load_output=False,
    )
    left: list[Left] = []
    for one in found:
        args = one.input["args"] if one.input else ()
        if len(args) < 3 or args[0] not in of:
            continue
        done = cast(dict[str, StoredOutcome], args[3]) if len(args) > 3 else {}
        steps = await DBOS.list_workflow_steps_async(one.workflow_id)
        more = {
            step["function_name"]: cast(StoredOutcome, step["output"])
            for step in steps
            if step["error"] is None and step["function_name"] in args[2]
        }
        asked = bool(_attributes(one).get(CANCEL_REQUESTED))
        left.append(Left(one.workflow_id, args[0], args[1], args[2], {**done, **more}, asked))
    return left


async def end_attempt(left: Left) -> None:
    """Let nobody go on with a job's last attempt, and say which one is the next."""
    further = {CONTINUED: left.next_workflow, _TO_BE_CONTINUED: True}
    await DBOS.update_workflow_attributes_async(left.workflow, further, merge=True)
    await DBOS.cancel_workflow_async(left.workflow)


async def note_continued(left: Left) -> None:
    """The next attempt is under way."""
    done = {_TO_BE_CONTINUED: False}
    await DBOS.update_workflow_attributes_async(left.workflow, done, merge=True)


def _attributes(found: WorkflowStatus) -> Mapping[str, object]:
    return found.attributes or {}
