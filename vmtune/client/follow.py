"""Following one migration or run to its end, through lost connections and restarts of the
service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.connection.sse import Patience, ServerEvent, follow


@dataclass(frozen=True, slots=True)
class Followed:
    """What can be followed: where its records are, and its topic among the events."""

    path: str
    topic: str


MIGRATION = Followed("/migrations", "migration")
RUN = Followed("/runs", "run")
CAMPAIGN = Followed("/campaigns", "campaign")


class Viewer(Protocol):
    """Shows how far something is."""

    def state(self, record: Document) -> None:
        """The record was read: its state may have changed."""

    def progress(self, data: Document) -> None:
        """QEMU got further."""

    def lost(self, error: ClientError) -> None:
        """The service does not answer; it is asked again."""


def read_record(
    client: Client, id: str, viewer: Viewer, patience: Patience, kind: Followed = MIGRATION
) -> Document:
    """The record, asked for again while the service is away.

    :raise ClientError: it was away for a minute, or refuses.
    """
    while True:
        try:
            record = client.get(f"{kind.path}/{segment(id)}")
        except ClientError as error:
            viewer.lost(error)
            patience.failed(error)
        else:
            patience.succeeded()
            return record


def to_the_end(
    client: Client,
    id: str,
    viewer: Viewer,
    new_patience: Callable[[], Patience] = Patience,
    kind: Followed = MIGRATION,
) -> Document:
    """The record once it has ended, telling *viewer* on the way.

    A lost connection means that its state is unknown: the record is read again after each
    new connection, on each sign of life, and whenever an event tells of it.

    :raise ClientError: the service was away for a minute, or refuses.
    """
    only = {"topic": kind.topic, "subject": id}
    for item in follow(client, query=only, patience=new_patience(), on_loss=viewer.lost):
        if isinstance(item, ServerEvent) and "share" in item.data["data"]:
            viewer.progress(item.data["data"])
            continue
        record = read_record(client, id, viewer, new_patience(), kind)
        viewer.state(record)
        if record["ended"]:
            return record
    raise AssertionError("the stream of events never ends")
