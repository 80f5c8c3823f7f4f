"""Errors that name what stays of a copy of disks where it could not be undone."""

from __future__ import annotations

from collections.abc import Collection

from vmtune.errors import CommandRefused
from vmtune.model.migration.disks import CopiedDisk


class ImagesLeft(CommandRefused):
    """Images could not be prepared, and some that were made could not be removed again.

    :param refusal: why not.
    :param left: those that stay.
    """

    def __init__(self, refusal: CommandRefused, left: tuple[CopiedDisk, ...]) -> None:
        super().__init__(refusal.message, problems=refusal.problems)
        self.left = left


class PoolsLeft(CommandRefused):
    """Storage pools of vmtune's own could not be removed.

    :param names: theirs.
    :param gone: the paths of images that were to be removed and are gone.
    """

    def __init__(self, names: Collection[str], gone: Collection[str] = ()) -> None:
        named = ", ".join(sorted(names))
        super().__init__(
            f"of the copies these storage pools are left: {named}",
            code="pool_left",
            remedy="; ".join(f"virsh pool-destroy {name}" for name in sorted(names)),
        )
        self.gone = gone
