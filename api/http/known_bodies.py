"""Bodies of answers that are costly to make, each with the version of what it shows.

Other than a kept answer (:mod:`vmtune.api.http.kept_answers`), which any write ends, such a body
holds as long as the version that its route reads first, whatever else is written meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

_MAX_BYTES = 16 << 20
_MAX_BODY_BYTES = 1 << 20


class KnownBodies:
    """The bodies used last.

    :param max_bytes: of all together; the ones used longest ago go first.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._bodies: OrderedDict[Hashable, tuple[Hashable, bytes]] = OrderedDict()

    def version(self, key: Hashable) -> Hashable | None:
        """The version that is known; None for none."""
        known = self._bodies.get(key)
        return None if known is None else known[0]

    def body(self, key: Hashable, version: Hashable) -> bytes | None:
        """The body of that version; None where it is not known, or no longer."""
        known = self._bodies.get(key)
        if known is None or known[0] != version:
            return None
        self._bodies.move_to_end(key)
        return known[1]

    def keep(self, key: Hashable, version: Hashable, body: bytes) -> None:
        """Know this body instead of an earlier one."""
        _, earlier = self._bodies.pop(key, (None, b""))
        self._bytes -= len(earlier)
        if len(body) > _MAX_BODY_BYTES:
            return
        self._bodies[key] = version, body
        self._bytes += len(body)
        while self._bytes > self._max_bytes:
            _, (_, oldest) = self._bodies.popitem(last=False)
            self._bytes -= len(oldest)
