"""Questions of libvirt's hook. On the unix socket alone: there the kernel identifies the caller,
and no token is needed."""

from __future__ import annotations

from fastapi import Depends, Request, Response
from starlette.requests import ClientDisconnect

from vmtune.api.auth.security import MIGRATE, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.responses import WITH_BODY, problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.errors import Forbidden
from vmtune.model.access.scopes import Kind
from vmtune.services.metrics import telemetry

MEDIA_TYPE = "application/xml"
ARRIVING = "/hooks/qemu"


async def _local(who: Who) -> None:
    """:raise Forbidden: the caller is not a local user."""
    if who.kind is not Kind.USER:
        raise Forbidden(
            f"{who} is not a process of this machine",
            field="socket",
            code="unix_socket_only",
            remedy="the libvirt hook uses the service's unix socket, without a token",
        )


router = Router(tags=["hooks"], dependencies=[Depends(_local)])
_XML = {"schema": {"type": "string"}}


class _Xml(Response):
    media_type = MEDIA_TYPE


@router.post(
    ARRIVING,
    responses=problems(*WITH_BODY, 409)
    | {
        200: {"description": "The changed XML.", "content": {MEDIA_TYPE: _XML}},
        204: {"description": "No change to the XML."},
    },
    response_class=_Xml,
    dependencies=[MIGRATE, LARGE_BODY],
    openapi_extra={
        "requestBody": {
            "description": "The XML of the incoming domain.",
            "required": True,
            "content": {MEDIA_TYPE: _XML},
        }
    },
)
async def vm_arrives(on: Services, request: Request) -> Response:
    """Announce an incoming migration and get the XML with the values of the VM's profile. For
    the libvirt hook (`migrate begin`), on the unix socket only."""
    try:
        body = await request.body()
    except ClientDisconnect:  # the hook has given up waiting
        return Response(status_code=204)
    with telemetry.hook() as record_outcome:
        answer = await on.hooks.arriving(body)
        record_outcome("unchanged" if answer.xml is None else "changed")
    request.state.subject = f"vm {answer.arrival.vm}"
    if answer.xml is None:
        return Response(status_code=204)
    return _Xml(answer.xml)
