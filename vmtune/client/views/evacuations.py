"""Evacuations as people read them: plans, records, how far all and each are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, paint, table
from vmtune.client.views.progress import Progression
from vmtune.model.migration.record import progress as never_back

_BAR = 24
_LEFT = ("blocked", "not placed", "failed", "aborted", "not started", "moved or stopped by others")


def path_of(host: str, id: str = "") -> str:
    """Where a host's evacuations are, or one of them."""
    return f"/hosts/{segment(host)}/evacuations" + (f"/{segment(id)}" if id else "")


def vms_of(client: Client, record: Document) -> list[Document]:
    """All VMs of an evacuation, in the order of moving."""
    return list(client.items(f"{path_of(record['host'], record['id'])}/vms"))


class EvacuationProgression(Progression):
    """How far all of it is, and each VM that is under way.

    :param vms: the evacuation's.
    """

    def __init__(self, vms: Sequence[Document]) -> None:
        super().__init__()
        self._names = {vm["vm"]: vm["name"] for vm in vms}
        self._shares: dict[str, float] = {}

    def read(self, record: Document) -> bool:
        before = self.stage
        if record["ended"]:
            self.share = 1.0
        self.stage = f"{record['moved']} of {record['total']} VMs moved"
        if record["state"] != "running":
            self.stage += f", {record['state']}"
        return self.stage != before

    def advance(self, data: Document) -> None:
        self.share = never_back(float(data["share"]), self.share)
        shares: Mapping[str, float] = data.get("vms", {})
        self._shares = {
            vm: never_back(share, self._shares.get(vm, 0.0)) for vm, share in shares.items()
        }
        self.figures = self._bars() if sys.stderr.isatty() else self._words()
        left = data.get("remaining_s")
        if left:
            self.figures += f"{chr(10) if sys.stderr.isatty() else ', '}about {left:.0f} s left"

    def _bars(self) -> str:
        widest = max((len(self._name(vm)) for vm in self._shares), default=0)
        lines = []
        for vm, share in self._shares.items():
            done = round(share * _BAR)
            bar = "━" * done + "┄" * (_BAR - done)
            lines.append(f"  {self._name(vm):<{widest}}  {bar} {share:4.0%}")
        return "\n".join(lines)

    def _words(self) -> str:
        return ", ".join(f"{self._name(vm)} {share:.0%}" for vm, share in self._shares.items())

    def _name(self, vm: str) -> str:
        return str(self._names.get(vm, vm))


def plan_lines(plan: Document) -> Iterator[str]:
    """What would move where, and what stands against it."""
    yield from vm_lines(plan["vms"], planned=True)
    for room in plan["rooms"]:
        yield _room(room)
    for host, why in plan["refused"].items():
        yield paint(f"{host} cannot receive VMs: {why}", "yellow")
    yield _sum(plan)
    codes = list(dict.fromkeys(code for vm in plan["vms"] for code in vm["blockers"]))
    if codes:
        yield f"to override: {' '.join(f'--override {code}' for code in codes)}"


def _room(room: Document) -> str:
    folders = ", ".join(room["folders"])
    promised = room["promised_bytes"]
    parts = [
        f"{render.size(room['free_bytes'])} free",
        *([f"{render.size(promised)} for other copies"] if promised else []),
        f"{render.size(room['needed_bytes'])} for these VMs",
        f"{render.size(room['left_bytes'])} left",
    ]
    return f"{room['host']} {folders}: {', '.join(parts)}"


def _disk(disk: Document) -> str:
    taken, whole = disk["allocated_bytes"], disk["capacity_bytes"]
    sizes = "" if taken is None else f", {render.size(taken)}"
    if taken is not None and whole is not None:
        sizes += f" of {render.size(whole)}"
    return f"{disk['target']} {disk['path']}{sizes}"


def _sum(plan: Document) -> str:
    count, left = plan["movable"], plan["left"]
    moves = f"{count} VM{'' if count == 1 else 's'} would move"
    return f"{moves}, {left} would remain" if left else moves


def vm_lines(vms: Sequence[Document], planned: bool = False) -> Iterator[str]:
    """The VMs, in the order of moving, and below them why some stay."""
    columns = (
        Column("VM"),
        Column("MEMORY", right=True),
        Column("PRIORITY", right=True, spare=1),
        Column("TO"),
        Column("STATE"),
    )
    cells = [
        (
            vm["name"],
            render.size(vm["memory_bytes"]) if vm["memory_bytes"] else "-",
            str(vm["priority"]),
            vm["destination"] or "-",
            "moves" if planned and vm["state"] == "waiting" else vm["state"],
        )
        for vm in vms
    ]
    yield from table(columns, cells, "no VMs")
    for vm in vms:
        if planned and vm["disks"]:
            yield f"{vm['name']} copies {'; '.join(map(_disk, vm['disks']))}"
        if vm["reason"]:
            color = "red" if vm["state"] in _LEFT else ""
            yield paint(f"{vm['name']}: {vm['reason']}", color)
            for finding in vm["findings"]:
                lifted = finding["overridable"] and finding["code"] in vm["overrides"]
                if finding["severity"] == "blocker" and finding["remedy"] and not lifted:
                    yield f"  {finding['remedy']}"


def lines(record: Document, vms: Sequence[Document]) -> Iterator[str]:
    """An evacuation as people read it."""
    states = ", ".join(f"{count} {state}" for state, count in record["states"].items())
    yield from fields(
        [
            ("evacuation", record["id"]),
            ("host", record["host"]),
            ("to", ", ".join(record["destinations"]) or "any eligible host"),
            ("order", record["order"]),
            ("profile", record["profile"] or ""),
            ("local disks", record["local_disks"]),
            ("concurrent", str(record["max_outgoing"] or "")),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("VMs", states),
            (
                "moved",
                f"{render.size(record['moved_bytes'])} of {render.size(record['total_bytes'])}",
            ),
            ("created", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
        ]
    )
    if vms:
        yield ""
        yield from vm_lines(vms)
