"""A connection whose errors are raised as vmtune's, and whether its daemon is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from vmtune.hypervisor.libvirt.errors import is_of_the_way, translate
from vmtune.hypervisor.libvirt.library import Library


class Calls:
    """What all calls of one connection share."""

    def __init__(self, library: Library, uri: str, raw: Any) -> None:  # any: libvirt has no types
        self.library = library
        self.uri = uri
        self._raw = raw

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise libvirt's errors as vmtune's."""
        try:
            yield
        except self.library.error as error:
            number, message = describe(error)
            alive = self.is_alive() and (not is_of_the_way(message) or self._answers())
            raise translate(number, message, alive, self.uri) from error

    def is_alive(self) -> bool:
        """Whether the daemon still is there, as far as is known."""
        try:
            return bool(self._raw.isAlive() == 1)
        except self.library.error:
            return False

    def _answers(self) -> bool:
        """Whether the daemon answers: virtproxyd's connection lives on where virtqemud is gone."""
        try:
            self._raw.getHostname()
        except self.library.error:
            return False
        return True


def describe(error: Any) -> tuple[int, str]:  # any: libvirt.libvirtError, which has no types
    """libvirt's error code and message."""
    return error.get_error_code() or 0, str(error)
