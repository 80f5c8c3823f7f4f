"""The disks that a migration copies, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vmtune.client.views.outlook import about
from vmtune.client.views.render import milliseconds, rate, size

if TYPE_CHECKING:
    from vmtune.client.connection.http import Document

DISKS = "disks"
"""The phase in which they are copied."""


def copying(data: Document) -> str:
    """How far the copies are while nothing else is sent, in one line.

    :param data: of a progress event.
    """
    disks: Sequence[Document] = data["disks"]
    left = data.get("disks_left_ms")
    parts = [
        "copying disks",
        "" if left is None else f"about {about(left)} left",
        *map(_of_one, disks),
        "then the memory",
    ]
    return ", ".join(part for part in parts if part) + "".join(map(helps, disks))


def _of_one(disk: Document) -> str:
    if disk["ready"]:
        return f"{disk['target']} has caught up"
    copied, total = size(disk["copied_bytes"]), size(disk["total_bytes"])
    pace = f" at {rate(disk['bytes_per_s'])}" if disk["bytes_per_s"] else ""
    return f"{disk['target']} {copied} of {total}{pace}"


def helps(disk: Document) -> str:
    """What would help a copy that does not catch up; empty where it does."""
    if disk["converges"] is not False:
        return ""
    return (
        f"; {disk['target']} does not catch up: the guest writes "
        f"{rate(disk['written_bytes_per_s'])} to it, and {rate(disk['bytes_per_s'])} are copied. "
        "It needs more bandwidth, or copy_synchronous_writes"
    )


def ready(disks: Sequence[Document]) -> str:
    """That the guest's writes follow, while its memory is sent; empty where nothing was copied."""
    return f"{len(disks)} disk{'s' if len(disks) > 1 else ''} copied" if disks else ""


def of_record(disk: Document, running: bool) -> str:
    """A disk of a migration's record.

    :param running: it has not ended.
    """
    copied, total = size(disk["copied_bytes"]), size(disk["total_bytes"])
    parts = [f"{copied} of {total} copied"]
    if disk["ready_ms"] is not None:
        parts.append(f"caught up after {milliseconds(disk['ready_ms'])}")
    elif running and disk["bytes_per_s"]:
        parts.append(rate(disk["bytes_per_s"]))
    if disk["written_bytes_per_s"] and running:
        parts.append(f"guest writes {rate(disk['written_bytes_per_s'])}")
    if disk["left_ms"] is not None:
        parts.append(f"about {about(disk['left_ms'])} left")
    return f"{', '.join(parts)}: {disk['path']}{_source_image(disk)}{helps(disk)}"


def _source_image(disk: Document) -> str:
    """What has become of the source's image, once the migration has ended, and why."""
    state, why = disk["source_image"], disk["source_image_reason"]
    if state == "kept" and not why:
        return ""
    return f"; source's image {state}" + (f": {why}" if why else "")
