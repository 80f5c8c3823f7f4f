"""What all handlers share: the services, paging, preconditions."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from pydantic import AwareDatetime, BeforeValidator

from vmtune.api.errors import PreconditionRequired
from vmtune.api.wiring.deps import Container
from vmtune.errors import InvalidInput, SetupError

PREFIX = "/api/v1"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_ETAG = re.compile(r'"([0-9]{1,9})"')


async def services(request: Request) -> Container:
    """The services. (Asynchronous, so that it costs no thread.)

    :raise SetupError: the service is still starting.
    """
    container: Container | None = request.app.state.container
    if container is None:
        raise SetupError("the service is starting", code="starting", remedy="try again")
    return container


Services = Annotated[Container, Depends(services)]


def _digits_alone(value: object) -> object:
    """Let pydantic read no number with blanks around it."""
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise ValueError("not a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_digits_alone)]
Limit = Annotated[Whole, Query(ge=1, le=200, description="Most items on the page.")]
After = Annotated[str | None, Query(description="`next` of the previous page.")]
Name = Annotated[str, Path(max_length=200)]
NameSearch = Annotated[
    str,
    Query(
        max_length=200,
        description="A part of the name, whatever the case, or the beginning of the UUID.",
    ),
]


def _date_first(value: object) -> object:
    """Let pydantic read no number as a moment: which epoch and unit is meant would be a guess."""
    if isinstance(value, str) and not _DATE.match(value):
        raise ValueError("not a time such as 2026-11-21T09:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_date_first)]
RevisionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


async def if_match(
    value: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description="The ETag of the revision to change, or * for the current one.",
        ),
    ] = None,
) -> int | None:
    """The revision that If-Match names; None for ``*``.

    :raise PreconditionRequired: there is no If-Match.
    """
    if value is None:
        raise PreconditionRequired(
            "a change needs the revision that it is based on",
            field="If-Match",
            remedy='send If-Match with the ETag of GET, such as "3", or * to skip the check',
        )
    return read_etag(value)


def read_etag(value: str) -> int | None:
    """The revision in an If-Match; None for ``*``.

    :raise InvalidInput: it is neither an ETag of ours nor ``*``.
    """
    if value.strip() == "*":
        return None
    match = _ETAG.fullmatch(value.strip())
    if match is None:
        raise InvalidInput(
            f"{value[:60]!r} is not an ETag of a profile",
            field="If-Match",
            remedy='send the ETag of GET, quotes included, such as "3"',
        )
    return int(match[1])


IfMatch = Annotated[int | None, Depends(if_match)]
