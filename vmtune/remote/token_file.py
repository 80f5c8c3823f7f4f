"""A file that holds one token: its content, and who else may read or write it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 200
"""No token is longer."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class TokenFile:
    """What was found in it; whether that will do is for its reader to say.

    :param content: at most :data:`MOST_BYTES`, and one more of a file that is too long.
    :param owner: the number of the user to whom it belongs.
    :param mode: its type and permissions.
    """

    content: bytes
    owner: int
    mode: int

    @property
    def is_too_long(self) -> bool:
        """Whether it holds more than any token."""
        return len(self.content) > MOST_BYTES

    @property
    def is_regular(self) -> bool:
        """Whether it is a file, and no pipe."""
        return stat.S_ISREG(self.mode)

    @property
    def is_open(self) -> bool:
        """Whether others than its owner may read or write it."""
        return bool(self.mode & _OTHERS)


def read_token_file(path: Path) -> TokenFile:
    """What is in *path*, and whose that same file is.

    :raise OSError: it cannot be read.
    """
    with path.open("rb") as opened:
        status = os.fstat(opened.fileno())
        return TokenFile(opened.read(MOST_BYTES + 1), status.st_uid, status.st_mode)
