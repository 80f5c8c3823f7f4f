"""Network namespaces of the lab, the link between them, and what runs in them."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from vmtune.errors import LabError
from vmtune.lab.programs import run

NETNS_FOLDER = Path("/run/netns")
LINK = "veth0"
MIGRATION_LINK = "veth1"
_STEP_S = 10.0


def namespace_inode(name: str) -> int:
    """The kernel's number of a named namespace; 0 when there is none."""
    try:
        return (NETNS_FOLDER / name).stat().st_ino
    except OSError:
        return 0


def namespace_exists(name: str) -> bool:
    """Whether the name is taken, be it by a namespace or by a mere file."""
    return os.path.lexists(NETNS_FOLDER / name)


def add_namespace(name: str, lock: int) -> int:
    """Make a namespace with its loopback up; return its inode.

    :param lock: the lab's, held until the name is made even if we are killed meanwhile: taking the
        lab down then finds the name.
    :raise LabError: the name is taken, or the kernel refuses.
    """
    run(
        ["ip", "netns", "add", name],
        doing=f"make the namespace {name}",
        timeout_s=_STEP_S,
        keeps=lock,
    )
    run(
        ["ip", "-n", name, "link", "set", "lo", "up"],
        doing=f"set up the loopback of {name}",
        timeout_s=_STEP_S,
    )
    return namespace_inode(name)


def delete_namespace(name: str) -> None:
    """Remove a namespace's name; the namespace ends with its last process."""
    if namespace_exists(name):
        run(
            ["ip", "netns", "delete", name],
            doing=f"remove the namespace {name}",
            timeout_s=_STEP_S,
        )


def remove_netns_folder() -> None:
    """Remove /run/netns, which ``ip netns add`` makes and mounts, if it is empty."""
    if NETNS_FOLDER.is_dir() and not any(NETNS_FOLDER.iterdir()):
        unmount(NETNS_FOLDER, below=False)
        # Another process may just have made a namespace: then it owns the folder.
        with contextlib.suppress(OSError):
            NETNS_FOLDER.rmdir()


def unmount(folder: Path, *, below: bool) -> None:
    """Unmount what is mounted on a folder, or below it, last mounted first.

    Bind mounts are found too, which ``os.path.ismount`` does not see.
    """
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    for point in reversed(points):
        if (point.startswith(f"{folder}/")) if below else (point == str(folder)):
            run(["umount", point], doing=f"unmount {point}", timeout_s=_STEP_S)


def join_namespaces(names: Sequence[str], addresses: Sequence[str], link: str = LINK) -> None:
    """Join namespaces, with one interface named *link* and one address in each: two by a veth
    pair, more by a bridge in the first."""
    first, *others = names
    if len(others) == 1:
        _add_pair(first, link, others[0], link)
    else:
        _ip(first, f"link add {link} type bridge\n")
        for i, other in enumerate(others):
            port = f"{link}p{i}"
            _add_pair(first, port, other, link)
            _ip(first, f"link set {port} master {link} up\n")
    for name, address in zip(names, addresses, strict=True):
        script = f"address add {address} dev {link}\nlink set {link} up\n"
        _ip(name, script)


def join_by_devices(names: Sequence[str], addresses: Sequence[str], devices: Sequence[str]) -> None:
    """Give each namespace a network device of this machine, under its own name, and an address.

    A card's port comes back by itself when its namespace ends.
    """
    for name, address, device in zip(names, addresses, devices, strict=True):
        run(
            ["ip", "link", "set", device, "netns", name],
            doing=f"give {device} to {name}",
            timeout_s=_STEP_S,
        )
        _ip(name, f"address add {address} dev {device}\nlink set {device} up\n")


def device_problem(device: str) -> str:
    """Why a network device of this machine cannot be the lab's; empty where it can."""
    listing = run(
        ["ip", "-json", "address", "show"], doing="list this machine's addresses", timeout_s=_STEP_S
    )
    for interface in json.loads(listing):
        if interface.get("ifname") == device:
            used = [str(info["local"]) for info in interface.get("addr_info", ())
                    if info.get("scope") == "global"]  # fmt: skip
            if used:
                return f"{device} has the address {', '.join(used)}: this machine uses it"
            return f"{device} is part of {interface['master']}" if "master" in interface else ""
    return f"this machine has no network device {device}"


def _add_pair(a: str, link_a: str, b: str, link_b: str) -> None:
    run(
        [
            *("ip", "link", "add", link_a, "netns", a, "type", "veth"),
            *("peer", "name", link_b, "netns", b),
        ],
        doing=f"join {a} and {b}",
        timeout_s=_STEP_S,
    )


def _ip(name: str, script: str) -> None:
    run(
        ["ip", "-n", name, "-batch", "-"],
        doing=f"set up the network of {name}",
        timeout_s=_STEP_S,
        stdin=script,
    )


def address_owner(address: str) -> str | None:
    """The interface of this machine, outside any lab, that has an address."""
    wanted = ipaddress.ip_interface(address).ip
    listing = run(
        ["ip", "-json", "address", "show"], doing="list this machine's addresses", timeout_s=_STEP_S
    )
    for interface in json.loads(listing):
        for info in interface.get("addr_info", ()):
            if "local" in info and ipaddress.ip_address(info["local"]) == wanted:
                return str(interface["ifname"])
    return None


def processes_in(inode: int) -> list[int]:
    """The processes whose network namespace has this inode, but ourselves."""
    return [pid for pid in _all_pids() if _network_inode(pid) == inode] if inode else []


def end_processes(inode: int, belongs: Callable[[int], bool], timeout_s: float = 10) -> None:
    """Kill the processes of a namespace and wait until they are gone.

    A process is killed by a handle taken before it is examined, so that a
    number given to another process meanwhile never hits that one.

    :param belongs: whether to kill the process with this pid.
    :raise LabError: some are still there after ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = [pid for pid in processes_in(inode) if _kill(pid, inode, belongs)]
        if not left:
            return
        if time.monotonic() > deadline:
            raise LabError(
                f"processes {', '.join(map(str, left))} do not end",
                code="process_stuck",
                remedy="a device or file system they use hangs; try again when it answers",
            )
        time.sleep(0.02)


def _kill(pid: int, inode: int, belongs: Callable[[int], bool]) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if _network_inode(pid) != inode or not belongs(pid):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def _all_pids() -> list[int]:
    own = os.getpid()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own]


def _network_inode(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0
