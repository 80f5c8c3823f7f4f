"""Replies that do not match QEMU's schema are reported as such, never as a fault of vmtune's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vmtune.errors import HostUnreachable, VmtuneError


@contextmanager
def reading_reply(what: str) -> Iterator[None]:
    """Read a reply in this context; *what* names its content.

    :raise HostUnreachable: it has another shape than QEMU's schema says, code
        ``unreadable_reply``. What is true is unknown then, as when no reply comes.
    """
    try:
        yield
    except VmtuneError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise HostUnreachable(
            f"QEMU's answer about {what} cannot be understood: "
            f"{type(error).__name__}: {str(error)[:200]}",
            code="unreadable_reply",
            remedy="see whether something else answers in QEMU's place; else report it, with the "
            "QEMU's version",
        ) from error
