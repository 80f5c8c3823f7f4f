"""Machines of different Debian releases, and a service outside them that reaches each by its
socket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live import Live, Service
from tests.support.machines import CHECKOUT, machine_settings
from vmtune import lab

RELEASES = ("bookworm", "trixie", "sid")
"""From the oldest on, as `make lab-releases` unpacks them."""
QEMU = Path("/usr/bin/qemu-system-x86_64")
"""Each release's own, wherever another QEMU is on the PATH."""


def root_of(release: str) -> Path:
    """Where a release is unpacked, if it is."""
    return CHECKOUT / ".cache" / f"root-{release}"


def unpacked() -> list[str]:
    """The releases that are."""
    return [name for name in RELEASES if Path(f"{root_of(name)}.complete").exists()]


def pairs() -> list[tuple[str, str]]:
    """Each two of them, the older one first."""
    return list(itertools.combinations(unpacked(), 2))


@contextmanager
def release_pair(older: str, newer: str, folder: Path) -> Iterator[Live]:
    """Machine a of the older release, and b of the newer one.

    :param folder: of the service.
    """
    roots = {"root_a": root_of(older).resolve(), "root_b": root_of(newer).resolve()}
    with machine_settings(qemu=QEMU, **roots) as settings:
        status = lab.up(settings)
        service = Service(folder)
        try:
            service.start()
            for name, host in zip("ab", status.hosts, strict=True):
                body = {"name": name, "uri": host.uri, "peer_uri": host.peer_uri}
                service.client.post("/hosts", body)
            yield Live(settings, service, status)
        finally:
            service.stop()
