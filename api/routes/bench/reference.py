"""Published measurements, to compare own ones with."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Header, Path, Query, Response

from vmtune.api.auth.security import READ
from vmtune.api.responses import KEPT, problems
from vmtune.api.routes.common import After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.reference import ReferencePage, ReferenceSummary, ReferenceView
from vmtune.reference.loading import reference, table_of

router = Router(prefix="/reference", tags=["reference"])


@router.get("", responses=problems(), dependencies=[READ])
async def list_references(on: Services, limit: Limit = 50, after: After = None) -> ReferencePage:
    """The sources of published tables."""
    page = on.queries.references(after, limit)
    return ReferencePage(items=[ReferenceSummary.of(each) for each in page.items], next=page.next)


@router.get(
    "/{id}",
    response_model=ReferenceView,
    responses=problems(404) | KEPT,
    dependencies=[READ],
)
async def get_reference(
    id: Annotated[str, Path(max_length=200)],
    table: Annotated[
        str | None, Query(max_length=200, description="Only this table of the source.")
    ] = None,
    if_none_match: Annotated[
        str | None, Header(alias="If-None-Match", description="An ETag of an earlier GET.")
    ] = None,
) -> Response:
    """One source: its setup and its tables, with recomputed ratios and changes."""
    found = reference(id)
    only = None if table is None else table_of(found, table)
    content = ReferenceView.of(found, only).model_dump_json().encode()
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")
