"""Start, stop and inspect the two-host lab.

Network namespaces joined by a veth pair (three by a bridge) or by two ports of network cards, and
in each a libvirtd with folders of its own bind-mounted in a mount namespace of its own. The mounts,
the link and the daemons end with their namespaces (a card's port returns to this machine), so that
what can stay behind is two names in /run/netns and one folder; the marker in the folder says which.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from vmtune.errors import LabError, Problem
from vmtune.lab.capabilities import recall, remember
from vmtune.lab.guest_build import build_guest
from vmtune.lab.host import HostPlan, plan_hosts, prepare_host, probe_emulator, start_host
from vmtune.lab.machines import PROGRAMS as MACHINE_PROGRAMS
from vmtune.lab.machines import as_built, prepare_machines, require_bases
from vmtune.lab.marker import Marker, boot_id, locked, read_marker, remove_folder
from vmtune.lab.namespaces import (
    LINK,
    MIGRATION_LINK,
    NETNS_FOLDER,
    add_namespace,
    address_owner,
    delete_namespace,
    device_problem,
    end_processes,
    join_by_devices,
    join_namespaces,
    namespace_exists,
    namespace_inode,
    remove_netns_folder,
    unmount,
)
from vmtune.lab.privileges import require_root
from vmtune.lab.programs import require_programs
from vmtune.lab.settings import LabSettings
from vmtune.lab.vms import VmStatus, list_vms


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host of the lab.

    :param uri: libvirt's URI for clients on this machine.
    :param peer_uri: libvirt's URI for the other host.
    :param libvirtd_pid: None when the daemon does not run.
    """

    name: str
    namespace: str
    uri: str
    peer_uri: str
    libvirtd_pid: int | None

    @property
    def running(self) -> bool:
        """Whether the daemon runs."""
        return self.libvirtd_pid is not None


@dataclass(frozen=True, slots=True)
class LabStatus:
    """What there is of the lab.

    :param state: ``down``, ``up``, or ``broken``: half-finished, crashed, or
        with a daemon that does not answer; ``down`` clears it away.
    :param vms: of the hosts that answer.
    """

    state: str
    folder: Path
    hosts: tuple[HostStatus, ...]
    vms: tuple[VmStatus, ...] = ()

    @property
    def running(self) -> bool:
        """Whether the lab is up as a whole."""
        return self.state == "up"


def up(settings: LabSettings | None = None) -> LabStatus:
    """Bring the lab up, or leave nothing. A lab that is up already is returned.

    :raise LabError: not root; a program is missing; a name, an address or the
        folder is taken; a lab of other settings, or a broken one, is there;
        the kernel or libvirtd refuses.
    """
    settings = settings or LabSettings()
    require_root()
    require_programs(
        *("ip", "unshare", "mount", "umount", "hostname", "sh", "virsh"),
        *("make", "gcc", "ld", settings.daemon, settings.qemu),
        *(MACHINE_PROGRAMS if settings.machines else ()),
    )
    if settings.machines:
        require_bases(settings)
    there = read_marker(settings.folder)
    if there is None:
        _check_free(settings)
    made_folder = not settings.folder.exists()
    try:
        settings.folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LabError(f"{settings.folder}: {error.strerror}", field="folder") from error
    with locked(settings.folder) as lock:
        # Checked again: another `up` may have been first.
        if read_marker(settings.folder) is not None:
            return _already_there(settings)
        marker = Marker(
            boot_id=boot_id(),
            settings=repr(settings),
            made_folder=made_folder,
            made_netns_folder=not NETNS_FOLDER.exists(),
        )
        marker.write(settings.folder)
        try:
            _build(settings, marker, lock)
        except BaseException:
            # The first error is the one to report, not those of the cleanup.
            with contextlib.suppress(LabError):
                _take_down(settings.folder)
            raise
    return status(settings)


def down(settings: LabSettings | None = None) -> None:
    """Take down what is left of the lab; having none is no error.

    Ends the lab's daemons and VMs, and removes its namespaces and its folder.

    :raise LabError: not root; the folder is another user's; a process does
        not end, or writes to the folder.
    """
    settings = settings or LabSettings()
    require_root()
    if read_marker(settings.folder) is None:
        return
    with locked(settings.folder):
        _take_down(settings.folder)


def status(settings: LabSettings | None = None) -> LabStatus:
    """What there is of the lab; also of one that crashed.

    :raise LabError: the folder is another user's.
    """
    settings = settings or LabSettings()
    marker = read_marker(settings.folder)
    settings = as_built(settings)
    hosts = tuple(_host_status(host) for host in plan_hosts(settings))
    if marker is None:
        return LabStatus("down", settings.folder, hosts)
    whole = marker.complete and all(host.running for host in hosts)
    vms: list[VmStatus] = []
    for host in hosts:
        if host.running:
            try:
                vms += list_vms(host.name, host.uri)
            except LabError:
                # Starting, hung, or killed a moment ago: there, and no use.
                whole = False
    return LabStatus("up" if whole else "broken", settings.folder, hosts, tuple(vms))


def inside(host: HostStatus) -> list[str]:
    """The start of a command line that runs a program as on that host: in its network, and
    on a machine with its root.

    :raise LabError: the host's daemon does not run.
    """
    if host.libvirtd_pid is None:
        raise LabError(f"{host.name} does not run", remedy="run `vmtune lab up`")
    target = str(host.libvirtd_pid)
    # By the daemon's root as well: a mount namespace alone starts in the old one.
    return ["nsenter", "-t", target, "--mount", "--uts", "--net", "--root", "--wd=/", "--"]


def _host_status(host: HostPlan) -> HostStatus:
    return HostStatus(host.name, host.name, host.uri, host.peer_uri, host.libvirtd_pid())


def _check_free(settings: LabSettings) -> None:
    problems = []
    for which, name in zip(settings.named("name"), settings.each("name"), strict=True):
        if namespace_exists(name):
            problems.append(
                Problem(
                    which,
                    "name_taken",
                    f"a network namespace {name} is there that is not this lab's",
                    "name another, or remove it with `ip netns delete`",
                )
            )
    for which, address in zip(settings.named("address"), settings.each("address"), strict=True):
        owner = address_owner(address)
        if owner is not None:
            problems.append(
                Problem(
                    which,
                    "address_taken",
                    f"{address.split('/')[0]} is this machine's own, on {owner}",
                    "choose addresses that nothing here uses",
                )
            )
    for which, device in (("device_a", settings.device_a), ("device_b", settings.device_b)):
        why_not = device_problem(device) if device else ""
        if why_not:
            remedy = "name a device without an address, whose other end is device_b's"
            problems.append(Problem(which, "device_unusable", why_not, remedy))
    if problems:
        raise LabError("the lab cannot be brought up here", problems=problems)


def _already_there(settings: LabSettings) -> LabStatus:
    marker = read_marker(settings.folder)
    now = status(settings)
    if now.running and marker is not None and marker.settings == repr(settings):
        return now
    what = "one with other settings is up" if now.running else "one that is not whole is there"
    raise LabError(
        f"cannot bring the lab up: {what} in {settings.folder}",
        field="folder",
        code="lab_exists",
        remedy="run `vmtune lab down` first",
    )


def _build(settings: LabSettings, marker: Marker, lock: int) -> None:
    folder = settings.folder
    hosts = plan_hosts(settings)
    for host in hosts:
        marker = marker.with_namespace(host.name, 0)
        marker.write(folder)
        try:
            inode = add_namespace(host.name, lock)
        except LabError:
            # Unless half of it was made, the name is another's.
            marker.without_namespace(host.name).write(folder)
            raise
        marker = marker.with_namespace(host.name, inode)
        marker.write(folder)
    names = settings.each("name")
    if settings.device_a:
        join_by_devices(names, settings.each("address"), (settings.device_a, settings.device_b))
    else:
        join_namespaces(names, settings.each("address"), LINK)
    if settings.machines:
        join_namespaces(names, settings.each("migration_address"), MIGRATION_LINK)
    for host in hosts:
        prepare_host(host, hosts)
        recall(host, settings)
    if settings.machines:
        prepare_machines(hosts, folder)
    with ThreadPoolExecutor(1 + len(hosts)) as pool:
        guest = pool.submit(build_guest, folder / "guest", lock)
        starts = [pool.submit(_start, host, settings) for host in hosts]
        for start in starts:
            start.result()
        guest.result()
    replace(marker, complete=True).write(folder)


def _start(host: HostPlan, settings: LabSettings) -> None:
    start_host(host, settings)
    probe_emulator(host, settings)
    remember(host, settings)


def _take_down(folder: Path) -> None:
    marker = read_marker(folder)
    if marker is None:
        return
    # After a restart of the machine the folder can still be there; the
    # namespaces cannot, and their names may belong to others.
    if marker.boot_id == boot_id():
        for mark in marker.namespaces:
            _end_namespace(mark.name, mark.inode, folder)
        if marker.made_netns_folder:
            remove_netns_folder()
    # The lab mounts nothing outside its own namespaces; its user may have.
    unmount(folder, below=True)
    remove_folder(folder, marker)


def _end_namespace(name: str, inode: int, folder: Path) -> None:
    named = namespace_inode(name)
    if inode in (0, named):
        end_processes(named, lambda _pid: True)
        delete_namespace(name)
    else:
        # Its name was removed by hand, or given to another namespace. The
        # number may be another's too, so check what a process has mounted.
        end_processes(inode, lambda pid: _has_mounted(pid, folder))


def _has_mounted(pid: int, folder: Path) -> bool:
    ending = tuple(f"/{folder.name}/{which}/etc" for which in "abc")
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return False
    mounts = (line.split() for line in lines)
    return any(parts[4] == "/etc/libvirt" and parts[3].endswith(ending) for parts in mounts)
