"""Chooses who raises limits of this machine: the service itself if it is root, else the root
unit."""

from __future__ import annotations

import os
from pathlib import Path

from vmtune.config.settings import Settings
from vmtune.hypervisor.linux.sysctl import PROC_SYS, SYSCTL_D, Sysctls, WishFile, read_wishes
from vmtune.hypervisor.linux.sysctl_unit import ROOT_JOURNAL, UnitSysctls
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService
from vmtune.services.hosts.limits import HostLimits, Writer

WISHES = "host-limits.json"
"""In the service's state folder; vmtune-limits.path watches it."""
JOURNAL = "host-journal.json"


def make_limits(settings: Settings, hosts: HostService, bus: EventBus) -> HostLimits:
    """The host's limits, as the operator allows."""
    wishes = settings.state_dir / WISHES
    writer: Writer = UnitSysctls(wishes=wishes)
    if os.geteuid() == 0:
        writer = Sysctls(settings.state_dir / JOURNAL, PROC_SYS, SYSCTL_D)
    return HostLimits(hosts, bus, writer, WishFile(wishes), settings.host_changes)


def apply_limits(
    wishes: Path, journal: Path = ROOT_JOURNAL, proc: Path = PROC_SYS, etc: Path = SYSCTL_D
) -> dict[str, int]:
    """The root unit's work: set limits to what the service requests.

    :return: what they are then.
    :raise SetupError: a file cannot be understood: nothing is changed.
    :raise CommandRefused: the kernel or a file system refuses it.
    """
    sysctls = Sysctls(journal, proc, etc)
    sysctls.reach(read_wishes(wishes))
    return sysctls.live()
