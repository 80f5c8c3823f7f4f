"""Questions of libvirt's hook: on the service's host by the unix socket, where the kernel
identifies the caller; on other hosts by HTTPS with a token."""

from __future__ import annotations

from fastapi import Depends, Request, Response
from starlette.requests import ClientDisconnect

from vmtune.api.auth.security import HOOK, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.responses import WITH_BODY, problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.errors import Forbidden
from vmtune.model.access.scopes import Kind
from vmtune.services.metrics import telemetry

MEDIA_TYPE = "application/xml"
ARRIVING = "/hooks/qemu"


async def _program(who: Who) -> None:
    """:raise Forbidden: the caller is a person in a browser, or may not see every VM of a host."""
    if who.kind not in (Kind.USER, Kind.TOKEN):
        raise Forbidden(
            f"{who} is not a process of this machine, and has no token",
            field="Authorization",
            code="hook_only",
            remedy="use the service's unix socket, or a token with the scope hook",
        )
    if who.rights.reach.labels:
        raise Forbidden(
            f"{who} is restricted to VMs with labels, and whether this VM has them is not known "
            "before it has arrived",
            field="Authorization",
            code="hook_reach",
            remedy="use a token that is restricted to its host alone",
        )


router = Router(tags=["hooks"], dependencies=[Depends(_program)])
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
    dependencies=[HOOK, LARGE_BODY],
    openapi_extra={
        "requestBody": {
            "description": "The XML of the incoming domain.",
            "required": True,
            "content": {MEDIA_TYPE: _XML},
        }
    },
)
async def vm_arrives(on: Services, who: Who, request: Request) -> Response:
    """Announce an incoming migration and get the XML with the values of the VM's profile. For
    the libvirt hook (`migrate begin`): on the service's host by the unix socket, on other hosts
    with a token of the scope `hook`, restricted to the host that asks."""
    try:
        body = await request.body()
    except ClientDisconnect:  # the hook has given up waiting
        return Response(status_code=204)
    with telemetry.hook() as record_outcome:
        answer = await on.hooks.arriving(body, _host(who))
        record_outcome("unchanged" if answer.xml is None else "changed")
    request.state.subject = f"vm {answer.arrival.vm}"
    if answer.xml is None:
        return Response(status_code=204)
    return _Xml(answer.xml)


def _host(who: Who) -> str:
    """The host that the VM arrives on, where the token says so."""
    hosts = who.rights.reach.hosts
    return next(iter(hosts)) if hosts is not None and len(hosts) == 1 else ""
