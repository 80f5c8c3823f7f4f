"""Bodies of answers that are costly to make, each with the version of what it shows.

Other than a kept answer (:mod:`vmtune.api.http.kept_answers`), which any write ends, such a body
holds as long as the version that its route reads first, whatever else is written meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable

from cachetools import LRUCache

_MAX_BYTES = 16 << 20
_MAX_BODY_BYTES = 1 << 20


class KnownBodies:
    """The bodies used last.

    :param max_bytes: of all together; the ones used longest ago go first.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._bodies: LRUCache[Hashable, tuple[Hashable, bytes]] = LRUCache(
            max_bytes, getsizeof=lambda known: len(known[1])
        )

    def version(self, key: Hashable) -> Hashable | None:
        """The version that is known; None for none."""
        return self._bodies.get(key, (None, b""))[0]

    def body(self, key: Hashable, version: Hashable) -> bytes | None:
        """The body of that version; None where it is not known, or no longer."""
        known, body = self._bodies.get(key, (None, b""))
        return body if known is not None and known == version else None

    def keep(self, key: Hashable, version: Hashable, body: bytes) -> None:
        """Know this body instead of an earlier one."""
        self._bodies.pop(key, None)
        if len(body) <= min(_MAX_BODY_BYTES, self._bodies.maxsize):
            self._bodies[key] = version, body
