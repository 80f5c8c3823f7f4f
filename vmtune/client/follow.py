"""Following one migration to its end, through lost connections and restarts of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vmtune.client.errors import ClientError
from vmtune.client.http import Client, Document, segment
from vmtune.client.sse import Patience, ServerEvent, follow


class Viewer(Protocol):
    """Shows how far a migration is."""

    def state(self, record: Document) -> None:
        """The record was read: its state may have changed."""

    def progress(self, data: Document) -> None:
        """QEMU got further."""

    def lost(self, error: ClientError) -> None:
        """The service does not answer; it is asked again."""


def read_record(client: Client, migration: str, viewer: Viewer, patience: Patience) -> Document:
    """The migration's record, asked for again while the service is away.

    :raise ClientError: it was away for a minute, or refuses.
    """
    while True:
        try:
            record = client.get(f"/migrations/{segment(migration)}")
        except ClientError as error:
            viewer.lost(error)
            patience.failed(error)
        else:
            patience.succeeded()
            return record


def to_the_end(
    client: Client,
    migration: str,
    viewer: Viewer,
    new_patience: Callable[[], Patience] = Patience,
) -> Document:
    """The migration's record once it has ended, telling *viewer* on the way.

    A lost connection means that its state is unknown: the record is read again after each
    new connection, on each sign of life, and whenever an event tells of the migration.

    :raise ClientError: the service was away for a minute, or refuses.
    """
    only = {"topic": "migration", "subject": migration}
    for item in follow(client, query=only, patience=new_patience(), on_loss=viewer.lost):
        if isinstance(item, ServerEvent) and "share" in item.data["data"]:
            viewer.progress(item.data["data"])
            continue
        record = read_record(client, migration, viewer, new_patience())
        viewer.state(record)
        if record["ended"]:
            return record
    raise AssertionError("the stream of events never ends")
