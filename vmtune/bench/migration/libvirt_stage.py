"""A run's VM on the two libvirt hosts of a lab that is up.

The domain is transient, so that it is gone when its QEMU is. Its name and its files are those of
the run's folder, by which the next run finds what a killed one has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.bench.migration.order import LibvirtTestbed
from vmtune.bench.migration.qemu_stderr import RING_FULL, RingFullCounter
from vmtune.bench.migration.send_counters import CONSENTS, SendCounters
from vmtune.bench.migration.stage import Side, finish
from vmtune.bench.model.runs.run import HostSide
from vmtune.bench.model.scenario.migration import Scenario, Transport
from vmtune.bench.model.settable import settable
from vmtune.bench.run_folder import clear_left_behind, end_processes_of, run_folder
from vmtune.errors import LabError, SetupError
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.libvirt.monitor import LibvirtMonitor
from vmtune.lab import HostStatus, LabSettings, VmSettings, define_vm, status, virsh

_READ_BYTES = 1 << 20
_WHICH = {HostSide.SOURCE: "a", HostSide.DESTINATION: "b"}
_LAST_LINES = 5


class LibvirtStage:
    """A :class:`~vmtune.bench.migration.stage.Stage` of two libvirt hosts.

    :param folders: of the lab's two hosts.
    :param link: to the first host, for what the run counts in its own domain.
    """

    def __init__(
        self,
        name: str,
        vm: UUID,
        kvm: bool,
        listener: GuestListener,
        sides: dict[HostSide, Side],
        hosts: dict[HostSide, HostStatus],
        folders: dict[HostSide, Path],
        link: Link,
    ) -> None:
        self.vm = vm
        self.kvm = kvm
        self.listener = listener
        self.source = sides[HostSide.SOURCE]
        self.destination = sides[HostSide.DESTINATION]
        self._name = name
        self._hosts = hosts
        self._folders = folders
        self.sends = SendCounters(LibvirtMonitor(link, vm, CONSENTS))

    def pid(self, side: HostSide) -> int | None:
        """The process of that side's QEMU, from the file that libvirt keeps while it runs."""
        file = self._folders[side] / "run/libvirt/qemu" / f"{self._name}.pid"
        try:
            return int(file.read_text())
        except (OSError, ValueError):
            return None

    def last_words(self, side: HostSide) -> str:
        """What QEMU complained of last, from libvirt's log of the domain."""
        counter = RingFullCounter()
        _read_log(_log_of(self._folders[side], self._name), counter)
        return "; ".join(complaints(counter.other())[-_LAST_LINES:])

    async def trace_full_rings(self, on: bool) -> None:
        """Switch QEMU's trace event on or off; its lines go to libvirt's log of the domain."""
        arguments = {"name": RING_FULL, "enable": on}
        command = json.dumps({"execute": "trace-event-set-state", "arguments": arguments})
        uri = self._hosts[HostSide.SOURCE].uri
        await asyncio.to_thread(virsh, uri, "qemu-monitor-command", self._name, command)

    async def full_rings(self) -> int:
        """How many exits were traced so far."""
        counter = RingFullCounter()
        log = _log_of(self._folders[HostSide.SOURCE], self._name)
        await asyncio.to_thread(_read_log, log, counter)
        return counter.count


def complaints(log: str) -> list[str]:
    """The lines that QEMU itself has written to libvirt's log of a domain: not libvirt's own, and
    not the command line and environment, which continue in the next line."""
    lines = [line.strip() for line in log.splitlines()]
    found = []
    for before, line in zip(["", *lines], lines, strict=False):
        of_command = line.endswith("\\") or before.endswith("\\")
        of_libvirt = "starting up libvirt" in line or "shutting down, reason=" in line
        if line and not of_command and not of_libvirt:
            found.append(line)
    return found


def _log_of(host: Path, name: str) -> Path:
    return host / "log/qemu" / f"{name}.log"


def _read_log(path: Path, counter: RingFullCounter) -> None:
    with contextlib.suppress(OSError), path.open("rb") as log:
        while data := log.read(_READ_BYTES):
            counter.add(data)


def bench_folder(lab: LabSettings) -> Path:
    """Where runs on a lab keep their sockets: in the lab's own folder, which both hosts see."""
    return lab.folder / "bench"


def clear_lab(lab: LabSettings) -> None:
    """Remove what killed runs have left on a lab."""
    for folder in clear_left_behind(bench_folder(lab)):
        _remove_files(lab, _vm_name(folder))


_VM_PREFIX = "bench-"
_VM_NAME = re.compile(rf"{_VM_PREFIX}[a-z0-9_]{{8}}")


def _vm_name(folder: str) -> str:
    return folder.replace("run-", _VM_PREFIX)


def is_of_a_run(name: str) -> bool:
    """Whether a VM of that name is one that a benchmark run has made."""
    return _VM_NAME.fullmatch(name) is not None


def _remove_files(lab: LabSettings, name: str) -> None:
    shutil.rmtree(lab.folder / "vms" / name, ignore_errors=True)
    for which in _WHICH.values():
        _log_of(lab.folder / which, name).unlink(missing_ok=True)


@asynccontextmanager
async def libvirt_stage(
    testbed: LibvirtTestbed, scenario: Scenario, kvm: bool
) -> AsyncIterator[LibvirtStage]:
    """A fresh domain on the lab's first host, and nothing left of it afterwards.

    :raise LabError: no lab is up, or libvirt refuses the domain.
    :raise SetupError: the scenario needs what libvirt's hosts do not offer.
    """
    if scenario.transport is not Transport.TCP:
        raise SetupError(
            f"between libvirt's hosts a VM migrates over TCP, not {scenario.transport.value}",
            field="scenario.transport",
            code="transport_not_offered",
            remedy="run the scenario in the testbed direct",
        )
    lab = testbed.lab
    await asyncio.to_thread(_require_up, lab)
    await asyncio.to_thread(clear_lab, lab)
    with run_folder(bench_folder(lab)) as folder:
        name = _vm_name(folder.name)
        listener = GuestListener(folder, scenario.workload.beat_ms)
        drivers: list[LibvirtDriver] = []
        hosts: dict[HostSide, HostStatus] = {}
        try:
            for side, host in zip(HostSide, status(lab).hosts, strict=True):
                hosts[side] = host
                driver = LibvirtDriver(
                    host.uri,
                    peer_uri=host.peer_uri,
                    more_commands=testbed.consents,
                    tunables=settable(),
                )
                drivers.append(driver)
            settings = VmSettings(
                name=name,
                memory_bytes=scenario.vm.memory_bytes,
                vcpus=scenario.vm.vcpus,
                workload=scenario.workload,
                listener=folder,
                kvm=kvm,
                dirty_ring_entries=scenario.dirty_ring_entries or None,
            )
            vm = await finish(asyncio.to_thread(_start, lab, settings))
            sides = {s: Side(hosts[s].name, d) for s, d in zip(HostSide, drivers, strict=True)}
            folders = {side: lab.folder / which for side, which in _WHICH.items()}
            link = Link(hosts[HostSide.SOURCE].uri)
            try:
                yield LibvirtStage(name, vm, kvm, listener, sides, hosts, folders, link)
            finally:
                await finish(link.close())
        finally:
            await finish(_take_down(lab, name, folder, drivers, listener))


def _require_up(lab: LabSettings) -> None:
    if not status(lab).running:
        raise LabError(
            f"no lab is up in {lab.folder}",
            field="testbed",
            code="lab_down",
            remedy="run `vmtune lab up` first",
        )


def _start(lab: LabSettings, settings: VmSettings) -> UUID:
    vm = define_vm(lab, settings)
    virsh(vm.uri, "undefine", settings.name)  # it runs, and is transient from now on
    return UUID(vm.uuid)


async def _take_down(
    lab: LabSettings, name: str, folder: Path, drivers: list[LibvirtDriver], listener: GuestListener
) -> None:
    await asyncio.gather(*(driver.close() for driver in drivers), return_exceptions=True)
    try:
        await asyncio.to_thread(_remove, lab, name, folder)
    finally:
        await asyncio.to_thread(listener.close)


def _remove(lab: LabSettings, name: str, folder: Path) -> None:
    for host in status(lab).hosts:
        for command in ("destroy", "undefine"):
            with contextlib.suppress(LabError):  # it is not there
                virsh(host.uri, command, name)
    end_processes_of(folder)  # where a daemon does not answer
    _remove_files(lab, name)
