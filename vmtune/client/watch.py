"""Watch one migration, run, campaign, study or evacuation until it ends; survives lost
connections and restarts of the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.connection.sse import Backoff, ServerEvent, watch


@dataclass(frozen=True, slots=True)
class Watched:
    """What can be watched: the path of its records and the topic of its events."""

    path: str
    topic: str


MIGRATION = Watched("/migrations", "migration")
RUN = Watched("/runs", "run")
CAMPAIGN = Watched("/campaigns", "campaign")
STUDY = Watched("/studies", "study")


class Viewer(Protocol):
    """Shows the progress of what is watched."""

    def state(self, record: Document) -> None:
        """The record was read: its state may have changed."""

    def progress(self, data: Document) -> None:
        """There is new progress."""

    def lost(self, error: ClientError) -> None:
        """The service does not answer; the client tries again."""


def read_record(
    client: Client, id: str, viewer: Viewer, backoff: Backoff, kind: Watched = MIGRATION
) -> Document:
    """The record; tries again while the service is unavailable.

    :raise ClientError: it was unavailable for a minute, or refused the request.
    """
    while True:
        try:
            record = client.get(f"{kind.path}/{segment(id)}")
        except ClientError as error:
            viewer.lost(error)
            backoff.failed(error)
        else:
            backoff.succeeded()
            return record


def watch_to_end(
    client: Client,
    id: str,
    viewer: Viewer,
    new_backoff: Callable[[], Backoff] = Backoff,
    kind: Watched = MIGRATION,
) -> Document:
    """Wait until it has ended and return its record; reports progress to *viewer*.

    After a lost connection its state is unknown: the record is read again after each
    reconnection, at each heartbeat and at each of its events.

    :raise ClientError: the service was unavailable for a minute, or refused the request.
    """
    only = {"topic": kind.topic, "subject": id}
    for item in watch(client, query=only, backoff=new_backoff(), on_loss=viewer.lost):
        if isinstance(item, ServerEvent) and "share" in item.data["data"]:
            viewer.progress(item.data["data"])
            continue
        record = read_record(client, id, viewer, new_backoff(), kind)
        viewer.state(record)
        if record["ended"]:
            return record
    raise AssertionError("the stream of events never ends")
