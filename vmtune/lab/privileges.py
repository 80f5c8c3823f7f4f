"""Namespaces and mounts are root's to make."""

from __future__ import annotations

import os

from vmtune.errors import LabError


def require_root() -> None:
    """:raise LabError: this process is not root's."""
    if os.geteuid() != 0:
        raise LabError(
            "the lab needs root: it makes network and mount namespaces",
            code="not_root",
            remedy="run it with sudo",
        )
