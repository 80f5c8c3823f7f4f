"""The token that the command proves itself with, where it is not at the service's machine.

Never from the command line: other users see that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import InvalidInput
from .token_file import MOST_BYTES, read_token_file


def default_file(environ: Mapping[str, str]) -> Path:
    """Where a user's token is looked for, for a service that is reached by its URL."""
    config = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '/root')}/.config"
    return Path(config, "vmtune", "token")


def find_token(environ: Mapping[str, str], file: Path | None, remote: bool) -> str:
    """The token in VMTUNE_TOKEN, in *file*, or in the user's own file where the service is
    *remote*; empty for none, as at the unix socket, where the kernel identifies the caller.

    :raise InvalidInput: the file cannot be read, or others may read it too.
    """
    if environ.get("VMTUNE_TOKEN"):
        return environ["VMTUNE_TOKEN"].strip()
    if file is not None:
        return read_token(file)
    own = default_file(environ)
    return read_token(own) if remote and own.exists() else ""


def read_token(file: Path) -> str:
    """The token in *file*.

    :raise InvalidInput: it cannot be read, holds none, or others than its owner may read it.
    """
    try:
        found = read_token_file(file)
    except OSError as error:
        raise InvalidInput(
            f"the token file {file} cannot be read: {error.strerror}",
            field="token_file",
            remedy="use a file that contains only a token",
        ) from error
    if found.is_regular and found.is_open:
        raise InvalidInput(
            f"other users may read or write the token file {file}",
            field="token_file",
            code="token_file_open",
            remedy=f"run `chmod 600 {file}`, and revoke the token if others could read it",
        )
    token = found.content.decode("ascii", "replace").strip()
    if found.is_too_long:
        raise InvalidInput(
            f"the file {file} has more than {MOST_BYTES} bytes, which is no token",
            field="token_file",
            remedy="use a file that contains only a token",
        )
    if not token or any(not 0x20 < ord(letter) < 0x7F for letter in token):
        raise InvalidInput(
            f"the file {file} has no token",
            field="token_file",
            remedy="write the line that `vmtune token create` printed into it",
        )
    return token
