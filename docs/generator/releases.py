"""The page of the releases that were migrated between, from what `make test-releases` saw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generator.markdown import code, plain, table

SEEN = Path(__file__).with_name("releases.json")


def page() -> str:
    """Each pair of releases: what was migrated both ways, and with which settings in force."""
    pairs = json.loads(SEEN.read_text())
    return "\n\n".join(
        [
            "# Releases migrated between",
            "`make test-releases` brings up two lab machines of different Debian releases, each "
            "with its own libvirt and QEMU, and migrates VMs from the older to the newer one and "
            "back, managed by the source's libvirt over TLS. This table is what it saw last.",
            table(
                ("older", "newer", "profile", "to the newer", "and back", "in force after both"),
                [row for pair in pairs for row in _rows(pair)],
            ),
            "**Virtio devices do not go from Debian 13's QEMU 10.0.13 to 11.1.3.** 10.0.13 gives "
            "the queues of all of them 1,024 entries, whatever they are configured to have, as "
            "maintenance releases before 11.1 are to (so says its source). 7.2.22, 10.0.2 and "
            "11.1.3 give those of a disk 256. 11.1.3 refuses queues that are longer than its own: "
            "`VQ 0 vring.num 1024 exceeds allocated max 256`. So each disk, SCSI controller, "
            "network card, entropy device, balloon and serial controller failed to arrive, with "
            "the machine types of 7.2 and of 10.0. The plan refuses such a VM "
            "([`virtio_queues_too_long`](findings.md#virtio_queues_too_long)). It does not look at "
            "network cards, since with some of them QEMU would stop the queue that it is asked "
            "about. What helps:",
            "- Shut the VM off, and start it on the destination.\n"
            "- A VM that came from Debian 12, and whose guest has not been rebooted since, still "
            "has queues of 256 entries, and goes on to 11.1.3.\n"
            "- Where disks are all the virtio devices that a VM has, start it with queues of 1,024 "
            "entries ([`virtio_blk_queue_size`](tunables.md#virtio_blk_queue_size)): it goes to "
            "11.1.3 and back. libvirt has no such setting that helps for SCSI controllers, network "
            "cards, entropy devices, balloons (it gives each VM one, unless its XML says "
            "`<memballoon model='none'/>`) and serial controllers.",
            "A copied disk with queues of 1,024 entries went there and back between two machines "
            "(`local-disk` in the table), and the plan refused one with queues of 256. The rest "
            "was seen between the QEMUs alone, with guests that had not begun to run.",
            "All of this was tried by each transport, with the service on a third machine: plan, "
            "apply, migrate there and back, revert; a migration by virsh there and back, which "
            "vmtune observes; and the same with libvirt's hook on both machines, which asks the "
            "service by HTTPS.",
            table(
                ("older", "newer", "transport", "succeeded"),
                [row for pair in pairs for row in _transports(pair)],
            ),
            "A VM goes back as long as it keeps its machine type. One that was started on the "
            "newer release, with a machine type that the older one lacks, is refused by the plan "
            "([`machine_not_offered`](findings.md#machine_not_offered)), before anything moves; "
            "an evacuation's plan lists it as one that stays. So it was with "
            + ", ".join(
                f"{_release(pair, 'newer')} to {_release(pair, 'older')}"
                for pair in pairs
                if pair.get("stays")
            )
            + ".",
            "In a rolling upgrade, evacuate one host, upgrade it, and evacuate the next one to it "
            "([Evacuate a host](../how-to/evacuate.md)). Create no VMs on upgraded hosts until all "
            "are, or give new VMs a machine type that every host has: "
            "`virsh domcapabilities --machine TYPE` on the oldest host says whether it does.",
            "Remaining memory is `ram.remaining` of `query-migrate`, whichever the QEMU. 11.1 has "
            "a `remaining` next to `ram`, too: of the whole VM, with its devices. vmtune does not "
            "read it. Older QEMUs have none, so figures of two releases would not compare; and "
            "QEMU renews it more seldom. In a slow migration by 11.1.3 it was what "
            "`ram.remaining` had been some 100 ms before; a reply of the first 13 ms has "
            "67,641,344 bytes, which is all of the memory, and 61,714,432 in `ram.remaining`. So "
            "what devices still have to send (VFIO) is no part of the remaining memory that "
            "vmtune shows. No such device was tried.",
        ]
    )


def _rows(pair: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    failed = pair.get("failed", [])
    profiles = dict.fromkeys([*(each["profile"] for each in pair["migrations"]), *failed])
    for profile in profiles:
        done = {each["to"]: each for each in pair["migrations"] if each["profile"] == profile}
        missing = "failed, or nothing was seen in force" if profile in failed else "not seen"
        both = [set(each["effective"]) for each in done.values()]
        in_force = sorted(set.intersection(*both)) if len(done) == 2 else []
        yield (
            _release(pair, "older"),
            _release(pair, "newer"),
            profile,
            *("completed" if to in done else missing for to in ("newer", "older")),
            ", ".join(f"[{code(name)}](tunables.md#{name})" for name in in_force),
        )


def _transports(pair: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for transport, succeeded in pair.get("transports", {}).items():
        releases = (_release(pair, "older"), _release(pair, "newer"))
        yield (*releases, code(f"qemu+{transport}"), ", ".join(succeeded) or "nothing")


def _release(pair: dict[str, Any], which: str) -> str:
    has = pair[f"{which}_has"]
    return plain(f"{pair[which]}: QEMU {has['qemu']}, libvirt {has['libvirt']}")
