"""What Prometheus reads."""

from __future__ import annotations

from fastapi import Request, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import METRICS
from vmtune.api.responses import problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router

router = Router(tags=["health"])
_TEXT = {"schema": {"type": "string"}}


class _Text(Response):
    media_type = "text/plain"


@router.get(
    "/metrics",
    response_class=_Text,
    responses=problems()
    | {
        200: {
            "description": "The metrics, in the format of the Accept header.",
            "content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT},
        }
    },
    dependencies=[METRICS, EVERYWHERE],
)
async def get_metrics(on: Services, request: Request) -> Response:
    """Prometheus metrics, as text or as OpenMetrics; also at /metrics. The
    documentation has a page of them. Contacts no host."""
    content, media_type = await on.exposition.scrape(request.headers.get("accept", ""))
    return Response(content, media_type=media_type)
