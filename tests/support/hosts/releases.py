"""Machines of different Debian releases, and a service outside them that reaches each by its
socket."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.hosts.live import Live, Service, add_hosts
from tests.support.hosts.machines import CHECKOUT, live_machines, machine_settings
from vmtune import lab

RELEASES = ("bookworm", "trixie", "sid")
"""From the oldest on, as `make lab-releases` unpacks them."""
RECORD = CHECKOUT / "docs/generator/releases.json"
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
            add_hosts(service.client, status)
            yield Live(settings, service, status)
        finally:
            service.stop()


@contextmanager
def release_machines(older: str, newer: str) -> Iterator[Live]:
    """Machine a of the older release, b of the newer one, and a service on a third, which has this
    machine's own root and reaches the others as a site's would."""
    roots = {"root_a": root_of(older).resolve(), "root_b": root_of(newer).resolve()}
    with live_machines(https=True, service_on="c", hosts=3, qemu=QEMU, **roots) as live:
        yield live


def versions(live: Live) -> dict[str, dict[str, str]]:
    """What the machines have, as the service sees hosts a and b."""
    seen = {}
    for name, which in (("a", "older_has"), ("b", "newer_has")):
        host = live.client.get(f"/hosts/{name}")
        seen[which] = {what: host[f"{what}_version"] for what in ("qemu", "libvirt")}
    return seen


_VERSIONS = ("older_has", "newer_has")
_DIRECTIONS = ("newer", "older")


def record(
    older: str,
    newer: str,
    *,
    migrations: Mapping[str, list[dict[str, Any]]] | None = None,
    transports: Mapping[str, list[str]] | None = None,
    **seen: Any,
) -> None:
    """With RECORD_RELEASES set, keep what was seen of a pair. What was seen before stays where it
    was not tried again, unless it was of other versions.

    :param migrations: those that succeeded, by the profile that was tried.
    :param transports: what succeeded, by the transport that was tried.
    :param seen: :func:`versions`, and the rest; without versions nothing was tried.
    """
    if not os.environ.get("RECORD_RELEASES") or not all(seen.get(key) for key in _VERSIONS):
        return
    known = json.loads(RECORD.read_text()) if RECORD.exists() else []
    of_pairs = {(each["older"], each["newer"]): each for each in known}
    kept = of_pairs.get((older, newer), {})
    if any(kept.get(key) != seen[key] for key in _VERSIONS):
        kept = {}
    tried = migrations or {}
    rows = [each for each in kept.get("migrations", []) if each["profile"] not in tried]
    failed = {name for name in kept.get("failed", []) if name not in tried}
    failed |= {name for name, done in tried.items() if len(done) < len(_DIRECTIONS)}
    of_pairs[older, newer] = kept | seen | {
        "older": older,
        "newer": newer,
        "failed": sorted(failed),
        "migrations": rows + [each for done in tried.values() for each in done],
        "transports": kept.get("transports", {}) | (transports or {}),
    }  # fmt: skip
    ordered = sorted(of_pairs, key=lambda pair: [RELEASES.index(name) for name in pair])
    text = json.dumps([of_pairs[pair] for pair in ordered], indent=2, sort_keys=True)
    RECORD.write_text(f"{text}\n")
