"""How the service is."""

from __future__ import annotations

from typing import Literal

from vmtune.api.schemas.common import Model


class Health(Model):
    """Health of the service."""

    status: Literal["ok"]
    version: str
    schema_revision: str
    jobs_running: int
    hosts: int
