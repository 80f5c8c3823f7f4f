"""vmtune's own tunables: each setting once. Code, API, CLI, UI and docs derive from it.

Defaults, ranges and names are those of QEMU 10.0 (migration/options.c, qapi/migration.json,
util/async.c, accel/kvm/kvm-all.c) and libvirt 11.3 (qemu_migration_params.c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.convergence import CONVERGENCE
from vmtune.model.tunables.rows.devices import DEVICES
from vmtune.model.tunables.rows.event_loops import EVENT_LOOPS
from vmtune.model.tunables.rows.machine import BOOT, HOST
from vmtune.model.tunables.rows.multifd import MULTIFD
from vmtune.model.tunables.rows.network import NETWORK
from vmtune.model.tunables.rows.placement import PLACEMENT
from vmtune.model.tunables.rows.postcopy import POSTCOPY
from vmtune.model.tunables.rows.reaper import REAPER
from vmtune.model.tunables.rows.storage import STORAGE
from vmtune.model.tunables.rows.switchover import SWITCHOVER
from vmtune.model.tunables.tunable import Tunable

_BY_SUBJECT: Mapping[str, Sequence[Tunable]] = MappingProxyType(
    {
        "Parallel migration": MULTIFD,
        "Convergence": CONVERGENCE,
        "Bandwidth, downtime and switchover": SWITCHOVER,
        "Migration network": NETWORK,
        "Copy of disks": STORAGE,
        "Threads and polling": EVENT_LOOPS,
        "Dirty ring and disk queues": BOOT,
        "Devices": DEVICES,
        "Placement on CPUs and memory": PLACEMENT,
        "Host limits": HOST,
        "Dirty-ring reaper": REAPER,
        "Recovery of post-copy": POSTCOPY,
    }
)
BUILT_IN = TunableRegistry(row for rows in _BY_SUBJECT.values() for row in rows)
"""In the order in which people should read them.

For code that names a tunable of vmtune's own. A name that comes from a user, a record or QEMU may
be a pack's: look it up in the registry that the service was started with."""

_SUBJECTS = {row.name: subject for subject, rows in _BY_SUBJECT.items() for row in rows}


def subject_of(row: Tunable) -> str:
    """What a tunable is about, as lists are grouped: ``Convergence``; a pack's own by its pack.

    >>> subject_of(BUILT_IN["auto_converge"])
    'Convergence'
    """
    return f"Pack {row.pack}" if row.pack else _SUBJECTS[row.name]


NOT_TUNED: Mapping[str, str] = MappingProxyType(
    {
        "background-snapshot": "for snapshots, not for migration",
        "block": "removed in QEMU 9.1; storage is copied by libvirt",
        "block-bitmap-mapping": "an alias table, no setting",
        "block-incremental": "belongs to the removed block capability",
        "compress-level": "fastest by default; the compress capability was removed in QEMU 9.1",
        "compress-wait-thread": "belongs to compress, which was removed in QEMU 9.1",
        "cpr-exec-command": "acts only where QEMU is replaced on its own host (mode cpr-exec)",
        "direct-io": "acts only on migration to a file",
        "dirty-bitmaps": "set by libvirt as the disks need it",
        "events": "vmtune and libvirt both need it on",
        "late-block-activate": "set by libvirt as the disks need it",
        "mapped-ram": "acts only on migration to a file",
        "mode": "live migration is the normal mode",
        "pause-before-switchover": "libvirt's own handshake",
        "postcopy-blocktime": "a statistic, switched on where it is measured",
        "rdma-pin-all": "RDMA is not a transport that vmtune drives",
        "release-ram": "frees source memory in post-copy; cannot be undone",
        "return-path": "switched on with post-copy by QEMU or libvirt",
        "switchover-ack": "for VFIO devices, set by libvirt",
        "tls-authz": "destination access control, set by the operator",
        "validate-uuid": "a safety check, no tuning",
        "x-checkpoint-delay": "for COLO",
        "x-colo": "fault tolerance, not migration",
        "x-ignore-shared": "for memory shared between both QEMUs",
        "x-rdma-chunk-size": "RDMA is not a transport that vmtune drives",
        "zero-blocks": "belongs to the removed block capability",
    }
)
"""Capabilities and parameters of QEMU that are no tunables, each with its reason."""

assert not {row.qmp.name for row in BUILT_IN.values() if row.qmp} & NOT_TUNED.keys()
