"""What the service refuses with, by its HTTP status.

::

    VmtuneError
    └── ClientError
        ├── ServiceUnreachable   nothing was sent
        ├── ConnectionLost       sent, and no whole answer came: the outcome is unknown
        └── Refused              the service answered with a problem
            ├── NotSignedIn      401: no token, or an invalid one
            ├── Denied           403: the token does not allow it
            ├── Missing          404: no such object
            ├── Conflicts        409: with what is stored or running
            ├── Stale            412: If-Match names an older revision
            ├── Invalid          422: ``problems`` has each field, its reason and remedy
            ├── HostFailed       424: a host did not answer; the outcome may be unknown
            ├── TooMany          429: too many failed attempts
            └── NotReady         503: the service or its database is not ready
"""

from __future__ import annotations

from collections.abc import Mapping

from .remote.documents import Document
from .remote.errors import Refused


class NotSignedIn(Refused):
    """No token, or an invalid one."""


class Denied(Refused):
    """The token does not allow it."""


class Missing(Refused):
    """No such object, or it is out of the token's reach."""


class Conflicts(Refused):
    """It contradicts what is stored or running."""


class Stale(Refused):
    """If-Match names an older revision."""


class Invalid(Refused):
    """Invalid input: ``problems`` has each field, its reason and remedy."""


class HostFailed(Refused):
    """A host or its QEMU did not answer: check again what came of it."""


class TooMany(Refused):
    """Too many failed attempts."""


class NotReady(Refused):
    """The service or its database is not ready."""


BY_STATUS: Mapping[int, type[Refused]] = {
    401: NotSignedIn,
    403: Denied,
    404: Missing,
    409: Conflicts,
    412: Stale,
    422: Invalid,
    424: HostFailed,
    429: TooMany,
    503: NotReady,
}


def refused(status: int, document: Document) -> Refused:
    """The error for a problem document."""
    return BY_STATUS.get(status, Refused)(status, document)
