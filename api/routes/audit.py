"""The audit log: who changed what and why, and who was refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import ADMIN
from vmtune.api.responses import problems
from vmtune.api.routes.common import After, Limit, Moment, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.access import EntryPage, EntryView, IntegrityView
from vmtune.api.wiring.deps import Container
from vmtune.model.access.audit import AuditSort, Outcome
from vmtune.services.access.audit import check_log
from vmtune.storage.repositories.audit_log import AuditFilter

_Text = Annotated[str | None, Query(max_length=200)]


router = Router(prefix="/audit", tags=["audit"], dependencies=[EVERYWHERE])


async def _wanted(
    actor: _Text = None,
    action: _Text = None,
    outcome: Outcome | None = None,
    about: Annotated[str | None, Query(max_length=200, description="Part of the subject.")] = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> AuditFilter:
    return AuditFilter(actor, action, outcome, about, since, until)


Wanted = Annotated[AuditFilter, Depends(_wanted)]


class AuditFormat(StrEnum):
    """How the log is exported."""

    JSONL = "jsonl"
    CSV = "csv"


_TYPES = {AuditFormat.JSONL: "application/x-ndjson", AuditFormat.CSV: "text/csv"}
_COLUMNS = (
    "number", "at", "kind", "id", "name", "origin", "action", "subject", "outcome", "status",
    "reason", "request", "codes", "changes", "vm", "vm_name", "hash",
)  # fmt: skip


@router.get("", responses=problems(), dependencies=[ADMIN])
async def list_audit(
    on: Services,
    wanted: Wanted,
    sort: AuditSort = AuditSort.NEWEST,
    limit: Limit = 50,
    after: After = None,
) -> EntryPage:
    """Entries, newest first unless `sort` says otherwise."""
    page = await on.access.audit.list(wanted, after, limit, sort)
    vms = await on.overview.vms_of(page.items)
    items = [EntryView.of(entry, vms.get(entry.number)) for entry in page.items]
    return EntryPage(items=items, next=page.next)


@router.get(
    "/export",
    responses=problems()
    | {200: {"content": {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()}}},
    response_class=StreamingResponse,
    dependencies=[ADMIN],
)
async def export_audit(
    on: Services, wanted: Wanted, form: AuditFormat = AuditFormat.JSONL
) -> StreamingResponse:
    """All entries, oldest first: one JSON object per line, or CSV."""
    lines = _as_csv(on, wanted) if form is AuditFormat.CSV else _as_json(on, wanted)
    return StreamingResponse(
        lines,
        media_type=_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="vmtune-audit.{form.value}"'},
    )


@router.get("/integrity", responses=problems(), dependencies=[ADMIN])
async def check_audit(on: Services) -> IntegrityView:
    """Check the hash chain of the audit log."""
    return IntegrityView.from_record(await on.heavy.run(check_log))


async def _as_json(on: Container, wanted: AuditFilter) -> AsyncIterator[str]:
    async for batch in on.access.audit.all(wanted):
        vms = await on.overview.vms_of(batch)
        views = (EntryView.of(entry, vms.get(entry.number)) for entry in batch)
        yield "".join(view.model_dump_json() + "\n" for view in views)


async def _as_csv(on: Container, wanted: AuditFilter) -> AsyncIterator[str]:
    yield ",".join(_COLUMNS) + "\r\n"
    async for batch in on.access.audit.all(wanted):
        text = io.StringIO()
        writer = csv.writer(text)
        vms = await on.overview.vms_of(batch)
        for entry in batch:
            shown = EntryView.of(entry, vms.get(entry.number)).model_dump(mode="json")
            row = {**shown, **shown["who"]}
            row["codes"] = " ".join(shown["codes"])
            row["changes"] = json.dumps(shown["changes"])
            writer.writerow([_harmless(row[name]) for name in _COLUMNS])
        yield text.getvalue()


def _harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: some are what strangers sent."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + cell
    return cell
