"""Requests with an ``Idempotency-Key``: sent twice, executed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vmtune.errors import InvalidInput, OperationInProgress
from vmtune.model.access.scopes import Kind

HEADER = "Idempotency-Key"
MAX_LENGTH = 255


class Begun(StrEnum):
    """What a request with a key can begin: the record that is looked for where its answer was
    lost."""

    APPLICATION = "application"
    MIGRATION = "migration"
    EVACUATION = "evacuation"
    RUN = "run"
    CAMPAIGN = "campaign"
    STUDY = "study"
    HOST = "host"
    PROFILE = "profile"
    ASSIGNMENT = "assignment"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Claim:
    """A key in a caller's hand. Two callers may use the same key.

    :param fingerprint: of the request (:func:`fingerprint`).
    :param action: the name of the route.
    :param begins: what it begins; None for what leaves no record of its own, such as a pause.
    """

    kind: Kind
    caller: str
    key: str
    fingerprint: str
    action: str
    begins: Begun | None = None

    def reused(self, action: str) -> InvalidInput:
        """The error for a key that came with another request, to *action*, before."""
        return InvalidInput(
            f"this key was sent with another request ({action})",
            field=HEADER,
            code="idempotency_key_reused",
            remedy="use a new key for each new request, and the same one only to repeat a "
            "request unchanged",
        )

    def in_progress(self) -> OperationInProgress:
        """The error for a request that is being executed."""
        return OperationInProgress(
            f"the request with this key ({self.action}) is being executed",
            field=HEADER,
            code="request_in_progress",
            remedy="repeat it in a second with the same key: you get its answer",
        )


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer that a request got.

    :param headers: ``content-type``, and ``location`` and ``etag`` where it had them.
    """

    status: int
    headers: Mapping[str, str]
    body: str


def check_key(key: str) -> str:
    """*key*, if it can be one.

    :raise InvalidInput: it is empty, too long, or not of visible ASCII characters.
    """
    if 1 <= len(key) <= MAX_LENGTH and all(0x21 <= ord(letter) <= 0x7E for letter in key):
        return key
    raise InvalidInput(
        f"{key[:60]!r} is not an idempotency key",
        field=HEADER,
        code="idempotency_key_malformed",
        remedy=f"send 1 to {MAX_LENGTH} visible ASCII characters, such as a random UUID",
    )


def fingerprint(method: str, target: str, body: bytes) -> str:
    """Tells requests apart: SHA-256 over method, path with query, and body. A JSON body counts by
    what it says, not by the order of its keys and its blanks."""
    try:
        said = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        said = body
    parts = (method.encode(), target.encode(), said)
    framed = b"".join(b"%d:%b" % (len(part), part) for part in parts)
    return hashlib.sha256(framed).hexdigest()
