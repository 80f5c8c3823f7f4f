"""VMs as people name them: by name, by UUID or by the first digits of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from vmtune.client.connection.http import Client, Document
from vmtune.client.near import near
from vmtune.client.resolve import is_beginning
from vmtune.errors import InvalidInput, NotFound, Problem

_LOOKED_AT = 2000


def as_uuid(text: str) -> str | None:
    """*text* in the usual form of a UUID, None where it is none."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def resolve(client: Client, vm: str) -> str:
    """The UUID of the VM that *vm* names. A UUID is taken as it is; a name comes before the
    beginning of a UUID.

    :raise NotFound: no VM has that name or UUID on the hosts that answer.
    :raise InvalidInput: several VMs have it; the message lists them.
    """
    uuid = as_uuid(vm)
    if uuid is not None:
        return uuid
    page = client.get("/vms", {"name": vm})
    found = _by_uuid(page["items"])
    if not found and is_beginning(vm):
        begun = client.items("/vms", {"search": vm})
        found = _by_uuid(row for row in begun if str(row["uuid"]).startswith(vm.lower()))
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise NotFound(f"no VM is named {vm}", problems=_nothing(client, vm, page))
    listed = ", ".join(
        f"{uuid} on {' and '.join(row['host'] for row in rows)}" for uuid, rows in found.items()
    )
    raise InvalidInput(
        f"{len(found)} VMs are named {vm}: {listed}",
        field="VM",
        code="ambiguous_name",
        remedy="use its UUID",
    )


def silent_hosts(pages: Iterable[Document]) -> list[Document]:
    """Why hosts do not answer whose VMs are on these pages of a list, each once: of a large fleet
    a page asks only the hosts of its own VMs."""
    found: dict[tuple[str, str], Document] = {}
    for page in pages:
        for problem in page["problems"]:
            found.setdefault((problem["field"], problem["code"]), problem)
    return list(found.values())


def _by_uuid(rows: Iterable[Document]) -> dict[str, list[Document]]:
    """Where each VM is: while it migrates it is on two hosts."""
    found: dict[str, list[Document]] = {}
    for row in rows:
        found.setdefault(row["uuid"], []).append(row)
    return found


def _nothing(client: Client, vm: str, page: Document) -> list[Problem]:
    """Why a name was not found: it may be misspelt, or on a host that does not answer."""
    names = (str(row["name"]) for row in islice(client.items("/vms"), _LOOKED_AT))
    remedy = "; ".join(filter(None, (near(vm, names), "`vmtune vm list` shows all VMs")))
    missing = Problem("VM", "not_found", f"no VM is named {vm}", remedy)
    silent = [
        Problem(row["field"], row["code"], row["message"], row.get("remedy") or "")
        for row in page.get("problems", ())
    ]
    return [missing, *silent]
