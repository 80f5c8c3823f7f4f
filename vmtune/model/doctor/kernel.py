"""Whether a kernel makes VMs boot slowly by its SRCU grace periods, judged by its version.

Linux commit 282d8998e997 (merged for 5.19-rc1) made expedited SRCU grace periods sleep;
8f870e6eb8c0 and 4f2bfd9494a0 (merged on 22 July 2022, between 5.19-rc7 and -rc8) fixed that. The
latter brought the parameters ``srcu_max_nodelay``, ``srcu_max_nodelay_phase`` and
``srcu_retry_check_delay`` of the module srcutree: where they are, the kernel is fixed, in any
version. Without them, a distribution may have taken over the one without the
others, which no version shows.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

FIXED_BY = frozenset({"srcu_max_nodelay", "srcu_max_nodelay_phase", "srcu_retry_check_delay"})
"""Parameters of srcutree that only a fixed kernel has."""
LAST_AFFECTED_RC = 7

_RELEASE = re.compile(
    r"(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?(?![\d.])(.{0,200})", re.ASCII | re.DOTALL
)
# 5.19.0-rc3, 5.19~rc3, 5.19.0-0.rc3.27.fc37, and Ubuntu's mainline builds 5.19.0-051900rc3.
_RC = re.compile(r"(?<![a-zA-Z])rc(\d{1,3})(?!\d)", re.ASCII)
# What git describe adds after a tag: 42 commits after it, 5.19.0-rc7-00042-g0123456789ab; and
# Fedora's dated snapshots, 5.19.0-0.rc7.20220720git353f7988dd84.
_SNAPSHOT = re.compile(r"-\d+-g[0-9a-f]{7,40}|\d{6,8}git[0-9a-f]{7,40}", re.ASCII)


class SrcuState(StrEnum):
    """Whether a kernel has the slow grace periods."""

    AFFECTED = "affected"
    FIXED = "fixed"
    BEFORE = "before the change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KernelVersion:
    """What ``uname -r`` says.

    :param rc: the release candidate's number; None for a release.
    :param snapshot: built from commits after the tag that it is named after.
    :param vendor: what follows the number, apart from the release candidate's.
    """

    major: int
    minor: int
    patch: int = 0
    rc: int | None = None
    snapshot: bool = False
    vendor: str = ""

    @classmethod
    def parse(cls, text: str) -> KernelVersion | None:
        """``6.1.0-18-amd64`` and its kin; None where it is no Linux version."""
        match = _RELEASE.fullmatch(text.strip())
        if match is None:
            return None
        major, minor, patch, rest = match.groups()
        rc = _RC.search(rest)
        vendor = _RC.sub("", rest, count=1) if rc else rest
        return cls(
            int(major),
            int(minor),
            int(patch or 0),
            int(rc[1]) if rc else None,
            _SNAPSHOT.search(rest) is not None,
            vendor.strip("-.~+"),
        )


@dataclass(frozen=True, slots=True)
class SrcuVerdict:
    """What can be said of a kernel, and why."""

    state: SrcuState
    reason: str


def judge_srcu(release: str, parameters: Collection[str]) -> SrcuVerdict:
    """Judge a kernel.

    :param release: ``uname -r``.
    :param parameters: names of the parameters that its srcutree has.
    """
    if set(parameters) >= FIXED_BY:
        return SrcuVerdict(SrcuState.FIXED, "srcutree has the parameters that came with the fix")
    version = KernelVersion.parse(release)
    if version is None:
        return SrcuVerdict(SrcuState.UNKNOWN, "it is not a version of Linux that vmtune can read")
    number = (version.major, version.minor)
    if number == (5, 19) and version.patch == 0 and version.rc is not None:
        return _candidate(version)
    if number >= (5, 19):
        return SrcuVerdict(SrcuState.FIXED, "5.19 was released with the fix")
    if version.vendor or version.patch or version.snapshot or version.rc is not None:
        return SrcuVerdict(SrcuState.UNKNOWN, "it is older than 5.19 and may have been changed")
    return SrcuVerdict(SrcuState.BEFORE, "the change came with 5.19")


def _candidate(version: KernelVersion) -> SrcuVerdict:
    rc = version.rc or 0
    if rc > LAST_AFFECTED_RC:
        return SrcuVerdict(SrcuState.FIXED, f"5.19-rc{LAST_AFFECTED_RC + 1} has the fix")
    if rc == LAST_AFFECTED_RC and version.snapshot:
        return SrcuVerdict(SrcuState.UNKNOWN, f"the fix came after 5.19-rc{LAST_AFFECTED_RC}")
    if rc == 0:
        return SrcuVerdict(SrcuState.UNKNOWN, "the change came into 5.19-rc1")
    return SrcuVerdict(SrcuState.AFFECTED, f"5.19-rc1 to -rc{LAST_AFFECTED_RC} have the change")
