"""VMs of the lab, by virsh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmtune.errors import LabError
from vmtune.lab.domain_xml import LISTENER_SOCKETS, VmFiles, build_domain_xml, kvm_usable, vm_uuid
from vmtune.lab.host import HostPlan, plan_hosts
from vmtune.lab.machines import as_built
from vmtune.lab.marker import read_marker
from vmtune.lab.programs import run
from vmtune.lab.settings import LabSettings, VmSettings

_VIRSH_TIMEOUT_S = 30.0
_STATES = {
    0: "no state",
    1: "running",
    2: "blocked",
    3: "paused",
    4: "shutting down",
    5: "shut off",
    6: "crashed",
    7: "suspended",
}
# A firmware that only starts the guest: seconds faster than SeaBIOS where
# firmware runs slowly.
_QBOOT = Path("/usr/share/qemu/qboot.rom")


@dataclass(frozen=True, slots=True)
class VmStatus:
    """A VM defined or running on a host of the lab; ``state`` in virsh's words."""

    name: str
    host: str
    state: str


@dataclass(frozen=True, slots=True)
class LabVm:
    """A VM that was defined in the lab.

    :param accelerator: ``kvm`` or ``tcg``.
    :param serial: the file with the guest's lines, from whichever host it runs on.
    """

    name: str
    uuid: str
    host: str
    uri: str
    accelerator: str
    serial: Path


def virsh(uri: str, *arguments: str, timeout_s: float = _VIRSH_TIMEOUT_S, stdin: str = "") -> str:
    """Run one virsh command on a host and return what it printed.

    :raise LabError: with virsh's own words.
    """
    return run(
        ["virsh", "--quiet", "--connect", uri, *arguments],
        doing=f"run virsh {arguments[0]}",
        timeout_s=timeout_s,
        stdin=stdin,
    )


def list_vms(host: str, uri: str) -> list[VmStatus]:
    """All VMs of a host, running or not."""
    return parse_domstats(host, virsh(uri, "domstats", "--state"))


def parse_domstats(host: str, text: str) -> list[VmStatus]:
    """The VMs in what ``virsh domstats --state`` prints."""
    vms = []
    name = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("Domain: '"):
            name = line.removeprefix("Domain: '").removesuffix("'")
        elif line.startswith("state.state=") and name:
            state = int(line.removeprefix("state.state="))
            vms.append(VmStatus(name, host, _STATES.get(state, f"state {state}")))
    return sorted(vms, key=lambda vm: vm.name)


def define_vm(
    settings: LabSettings | None = None,
    vm: VmSettings | None = None,
    *,
    host: str = "a",
    start: bool = True,
) -> LabVm:
    """Define the VM on a host of a lab that is up, and start it.

    A definition of the same name is replaced, its serial log and its disks
    begun anew.

    :param host: ``a`` or ``b``, of three ``c``.
    :raise LabError: the lab is not there; a VM of that name runs on either
        host; KVM is requested and not usable; no program listens; libvirt refuses.
    """
    settings = settings or LabSettings()
    vm = vm or VmSettings()
    hosts = {plan.which: plan for plan in plan_hosts(as_built(settings))}
    at = hosts.get(host)
    if at is None:
        raise LabError(
            f"the lab has no host {host!r}", field="host", remedy=f"use {' or '.join(hosts)}"
        )
    if read_marker(settings.folder) is None or at.libvirtd_pid() is None:
        raise LabError(
            f"no lab is up in {settings.folder}",
            field="folder",
            code="lab_down",
            remedy="run `vmtune lab up` first",
        )
    for plan in hosts.values():
        running = [v for v in _vms_of(plan) if v.name == vm.name and v.state != "shut off"]
        if running:
            raise LabError(
                f"{vm.name} is {running[0].state} on {plan.name}",
                field="name",
                code="vm_running",
                remedy="stop it, or give the VM another name",
            )
    if vm.listener is not None:
        _require_sockets(vm.listener)
    kvm = _choose_kvm(vm)
    files = _make_files(settings, vm)
    virsh(at.uri, "define", "/proc/self/fd/0", stdin=build_domain_xml(vm, files, kvm=kvm))
    if start:
        virsh(at.uri, "start", vm.name)
    return LabVm(
        name=vm.name,
        uuid=str(vm_uuid(vm.name)),
        host=at.name,
        uri=at.uri,
        accelerator="kvm" if kvm else "tcg",
        serial=files.serial,
    )


def _vms_of(plan: HostPlan) -> list[VmStatus]:
    return list_vms(plan.name, plan.uri) if plan.libvirtd_pid() is not None else []


def _choose_kvm(vm: VmSettings) -> bool:
    if vm.kvm is False:
        return False
    usable = kvm_usable()
    if not usable and (vm.kvm or vm.dirty_ring_entries is not None):
        raise LabError(
            "this machine has no usable /dev/kvm",
            field="kvm" if vm.kvm else "dirty_ring_entries",
            code="no_kvm",
            remedy="leave the field unset: the VM then runs by TCG",
        )
    return usable


def _require_sockets(listener: Path) -> None:
    for path in (listener / name for name in LISTENER_SOCKETS):
        if not path.is_socket():
            raise LabError(
                f"{path} is not a socket",
                field="listener",
                code="no_listener",
                remedy="begin to listen before the VM starts",
            )


def _make_files(settings: LabSettings, vm: VmSettings) -> VmFiles:
    folder = settings.folder / "vms" / vm.name
    folder.mkdir(parents=True, exist_ok=True)
    serial = folder / "serial.log"
    serial.write_bytes(b"")
    disks = []
    for i, disk in enumerate(vm.disks):
        path = folder / f"disk{i}.raw"
        with path.open("wb") as file:
            file.truncate(disk.size_bytes)
        disks.append(path)
    return VmFiles(
        emulator=settings.qemu,
        kernel=settings.folder / "guest" / "guest.elf",
        serial=serial,
        firmware=_QBOOT if _QBOOT.exists() else None,
        disks=tuple(disks),
    )
