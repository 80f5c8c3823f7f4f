"""The files that the hook needs to ask a service on another host."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

from vmtune.errors import SetupError
from vmtune.remote.token_file import read_token_file

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+\n?")
"""What the hook itself takes from its file, and no other end of the line."""


def check_token(path: Path) -> None:
    """See that *path* has a token which its owner alone can read.

    :raise SetupError: it cannot be used; code ``unsafe_token`` where others could read it.
    """
    try:
        found = read_token_file(path)
    except OSError as error:
        raise _unusable(path, error.strerror or "it cannot be read") from error
    if found.owner not in (0, os.geteuid()) or found.is_open:
        raise SetupError(
            f"{path}: other users than root can read it",
            field="hook_token_file",
            code="unsafe_token",
            remedy=f"run `chown root {path}` and `chmod 600 {path}`",
        )
    if found.is_too_long or not _TOKEN.fullmatch(found.content):
        raise _unusable(path, "its content is not one token")


def check_certificates(path: Path) -> None:
    """See that *path* has certificates in PEM.

    :raise SetupError: it has none, or cannot be read.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise SetupError(
            f"{path} has no certificate in PEM",
            field="ca_file",
            remedy="name the certificate of the authority that signed the service's",
        ) from error
    except OSError as error:
        raise SetupError(
            f"{path}: {error.strerror}",
            field="ca_file",
            remedy="copy the certificate of the authority there",
        ) from error


def _unusable(path: Path, why: str) -> SetupError:
    return SetupError(
        f"{path}: {why}",
        field="hook_token_file",
        remedy="write the token of `vmtune token create --scope hook --host HOST` into it",
    )
