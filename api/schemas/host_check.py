"""A host check: what was tried, and how it went."""

from __future__ import annotations

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.model.host.check import HostCheck, Result


class CheckStepView(Model):
    """One thing that a migration needs."""

    host: str
    what: str
    result: Result
    message: str
    remedy: str = Field(description="What to do about it; empty if nothing.")


class HostCheckView(Model):
    """A check of a host, and of the way to another one."""

    host: str
    to: str = Field(description="The other host; empty for the host alone.")
    passed: bool = Field(description="No step failed. Steps that were not checked prove nothing.")
    steps: list[CheckStepView]

    @classmethod
    def of(cls, check: HostCheck) -> HostCheckView:
        return cls.from_record(check, passed=check.passed)
