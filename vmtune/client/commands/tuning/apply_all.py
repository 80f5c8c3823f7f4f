"""``vmtune apply --all``: apply to each VM of a selection, one after the other, and sum up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from vmtune.client.connection.errors import ConnectionLost, Refused
from vmtune.client.connection.http import Document, Query
from vmtune.client.session import CLEAN, DIFFERENCES, ERROR, INTERRUPTED, Session
from vmtune.client.views import render
from vmtune.client.views.output import Column
from vmtune.client.vms import silent_hosts
from vmtune.errors import VmtuneError

AS_WANTED = frozenset({"effective", "pending migration", "pending restart"})
_BAD = ("failed", "refused", "unknown")
_NO_PROFILE = "no profile is assigned"
_COLUMNS = (
    Column("VM", field="name"),
    Column("HOST"),
    Column("PROFILE", spare=1),
    Column("OUTCOME"),
    Column("APPLICATION", id=True, spare=2),
    Column("REASON", wraps=True),
)


@dataclass(frozen=True, slots=True)
class Order:
    """What to apply, and when to stop.

    :param profile: instead of what each VM drifts from, or of its assigned profile.
    :param most: as many VMs are changed at most.
    :param stop_after_failures: no more are changed after so many failures.
    """

    profile: str | None
    revision: int | None
    best_effort: bool
    boot_only: bool
    dry_run: bool
    most: int
    stop_after_failures: int

    def body(self, vm: Document) -> dict[str, object]:
        """What is asked of the service for *vm*: a VM with a profile gets the same again."""
        had = vm["tuning"] or {}
        if self.profile is not None or not had.get("profile"):
            return {"profile": self.profile, "revision": self.revision}
        return {"profile": had["profile"], "revision": had["revision"]}


def apply_all(session: Session, query: Query, order: Order) -> int:
    """Apply to the running VMs of *query*, print the outcome of each and the sum.

    :return: 0 all as wanted, 2 some differ or were skipped, 1 some failed.
    """
    listed = list(session.client.pages("/vms", query))
    silent = silent_hosts(listed)
    running = [
        row for page in listed for row in page["items"] if row["state"] in ("running", "paused")
    ]
    vms = list({row["uuid"]: row for row in running}.values())
    outcomes: list[Document] = []
    interrupted = False
    for number, vm in enumerate(vms, start=1):
        left = "interrupted" if interrupted else _left(outcomes, order)
        try:
            found = _outcome(vm, "skipped", left) if left else _applied(session, vm, order)
        except KeyboardInterrupt:
            interrupted = True
            found = _outcome(vm, "unknown", "interrupted; `vmtune verify` shows it")
        outcomes.append(found)
        if session.shows_progress and not left:
            where = f"{vm['name']} on {vm['host']}"
            click.echo(f"{number} of {len(vms)}: {where}: {found['outcome']}", err=True)
    counts = Counter(str(row["outcome"]) for row in outcomes)
    document = {"items": outcomes, "counts": counts, "problems": silent}
    session.show_list(
        document, _COLUMNS, _cells, "no running VM is selected", lambda: _sum(counts, silent)
    )
    if interrupted:
        return INTERRUPTED
    if silent or any(counts[each] for each in _BAD):
        return ERROR
    return DIFFERENCES if set(counts) - {"applied", "would apply"} else CLEAN


def _left(outcomes: Sequence[Document], order: Order) -> str:
    """Why no more VMs are changed; empty where they are."""
    tried = [row for row in outcomes if row["outcome"] != "skipped"]
    if sum(row["outcome"] in _BAD for row in tried) >= order.stop_after_failures:
        return f"stopped after failures ({order.stop_after_failures})"
    return f"limit of {order.most} VMs" if len(tried) >= order.most else ""


def _applied(session: Session, vm: Document, order: Order) -> Document:
    path, body = f"/vms/{vm['uuid']}", order.body(vm)
    try:
        if order.dry_run:
            plan = session.client.post(f"{path}/plan", body)
            if not plan["profile"]:
                return _outcome(vm, "skipped", _NO_PROFILE)
            blocking = [f["code"] for f in plan["findings"] if f["severity"] == "blocker"]
            return _outcome(vm, "blocked" if blocking else "would apply", ", ".join(blocking), body)
        body |= {"best_effort": order.best_effort, "boot_only": order.boot_only}
        record = session.client.post(f"{path}/applications", body)
    except Refused as error:
        if any(problem.code == "no_profile" for problem in error.problems):
            return _outcome(vm, "skipped", _NO_PROFILE)
        return _outcome(vm, "refused", _why(error), body)
    except ConnectionLost as error:
        return _outcome(vm, "unknown", error.message, body)
    if record["state"] != "applied":
        reasons = "; ".join(str(problem["message"]) for problem in record["problems"])
        return _outcome(vm, "failed", reasons or record["state"], record)
    differing = [o["tunable"] for o in record["outcomes"] if o["status"] not in AS_WANTED]
    return _outcome(vm, "differs" if differing else "applied", " ".join(differing), record)


def _why(error: VmtuneError) -> str:
    return "; ".join(problem.message for problem in error.problems) or error.message


def _outcome(vm: Document, outcome: str, reason: str, made: Document | None = None) -> Document:
    made = made or {}
    return {
        **{name: vm[name] for name in ("name", "uuid", "host")},
        "profile": made.get("profile"),
        "revision": made.get("revision"),
        "application": made.get("id"),
        "outcome": outcome,
        "reason": reason,
    }


def _cells(row: Document) -> tuple[str, ...]:
    profile = render.profile(row) if row["revision"] else row["profile"] or "assigned"
    return (
        row["name"], row["host"], profile, row["outcome"], row["application"] or "", row["reason"],
    )  # fmt: skip


def _sum(counts: Counter[str], silent: Sequence[Document]) -> Iterator[str]:
    if counts:
        parts = (f"{count} {outcome}" for outcome, count in counts.items())
        yield f"{counts.total()} VM{'' if counts.total() == 1 else 's'}: {', '.join(parts)}"
    yield from render.problems(silent)
