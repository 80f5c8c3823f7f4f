"""VMs as people name them: by name or by UUID."""

from __future__ import annotations

from uuid import UUID

from vmtune.client.connection.http import Client, Document
from vmtune.errors import InvalidInput, NotFound, Problem


def as_uuid(text: str) -> str | None:
    """*text* in the usual form of a UUID, None where it is none."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def resolve(client: Client, vm: str) -> str:
    """The UUID of the VM that *vm* names. A UUID is taken as it is.

    :raise NotFound: no VM has that name on the hosts that answer.
    :raise InvalidInput: several VMs have it; the message lists them.
    """
    uuid = as_uuid(vm)
    if uuid is not None:
        return uuid
    page = client.get("/vms", {"name": vm})
    found: dict[str, list[Document]] = {}
    for row in page["items"]:
        found.setdefault(row["uuid"], []).append(row)
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise NotFound(f"no VM is named {vm}", problems=_nothing(vm, page))
    listed = ", ".join(
        f"{uuid} on {' and '.join(row['host'] for row in rows)}" for uuid, rows in found.items()
    )
    raise InvalidInput(
        f"{len(found)} VMs are named {vm}: {listed}",
        field="VM",
        code="ambiguous_name",
        remedy="use its UUID",
    )


def _nothing(vm: str, page: Document) -> list[Problem]:
    """Why a name was not found: it may be on a host that does not answer."""
    missing = Problem(
        "VM", "not_found", f"no VM is named {vm}", "`vmtune vm list` shows the VMs of all hosts"
    )
    silent = [
        Problem(row["field"], row["code"], row["message"], row.get("remedy") or "")
        for row in page.get("problems", ())
    ]
    return [missing, *silent]
