"""Of the QMP commands for block nodes, what leaves vmtune: an export by NBD on a unix socket, of
nodes that are there read-only, and writable of vmtune's own alone; and for a migration that copies
disks, exports and mirrors whose names begin with :data:`COPY`. These may be reached by TCP, where
they can be written: at one address, by as many clients as there are disks, and by TLS where that
is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from vmtune.model.host.network import is_one_address

Arguments = Mapping[str, Any]  # any JSON
OWN = "vmtune-"
"""What the names of nodes, exports and jobs begin with that are vmtune's own."""
FILE, NODE, EXPORT, JOB = f"{OWN}file", f"{OWN}node", f"{OWN}export", f"{OWN}create"
COPY = f"{OWN}copy-"
"""Of what copies disks."""
LIBVIRT_COPY = "drive-"
"""How the names of libvirt's jobs begin that copy disks of a migration: the disk's alias follows
(qemuMigrationSrcNBDStorageCopyOne of src/qemu/qemu_migration.c)."""
SOCKET = f"{OWN}nbd.sock"
"""The only name that an NBD server's socket is given: QEMU removes what it finds in its place."""
UNPRIVILEGED = range(1024, 1 << 16)
"""Ports that no service of the system has (ip(7), net.ipv4.ip_unprivileged_port_start)."""
MOST_DISKS = 1024
"""That are copied at once: each is a client of its own."""

ASKING = ("query-named-block-nodes", "query-block", "query-block-exports", "query-jobs")
UNGUARDED = ("nbd-server-stop",)


def _listens(arguments: Arguments) -> str:
    address = arguments.get("addr")
    data = address.get("data") if isinstance(address, Mapping) else None
    known = {"addr", "max-connections", "tls-creds", "tls-authz"}
    kind = address.get("type") if isinstance(address, Mapping) else None
    if not (set(arguments) <= known and isinstance(data, Mapping)):
        return "an NBD server listens on an address, and has a number of clients at most"
    if kind == "inet":
        return _listens_on_tcp(data, arguments.get("max-connections"))
    path = data.get("path")
    if kind == "unix" and isinstance(path, str) and PurePath(path).name == SOCKET:
        return ""
    return f"an NBD server listens on TCP, or on a unix socket called {SOCKET}"


def _listens_on_tcp(data: Arguments, clients: object) -> str:
    if set(data) != {"host", "port"}:
        return "an NBD server listens on a host and a port"
    host, port = data["host"], data["port"]
    if not (isinstance(host, str) and is_one_address(host)):
        return "an NBD server listens on one address, not on all of the host's"
    if not (isinstance(port, str) and port.isdecimal() and int(port) in UNPRIVILEGED):
        return f"an NBD server listens on a port from {UNPRIVILEGED[0]} to {UNPRIVILEGED[-1]}"
    if isinstance(clients, bool) or not isinstance(clients, int) or not 0 < clients <= MOST_DISKS:
        return f"an NBD server that is reached by TCP has 1 to {MOST_DISKS} clients at most"
    return ""


def _exports(arguments: Arguments) -> str:
    known = {"type", "id", "name", "node-name", "writable", "iothread"}
    if not set(arguments) <= known or arguments.get("type") != "nbd":
        return "nodes are exported by NBD, with a name and an iothread at most"
    if not _is_own(arguments.get("id")):
        return f"the id of an export begins with {OWN}"
    own = _is_own(arguments.get("node-name")) or _is_copy(arguments.get("id"))
    if arguments.get("writable", False) is not False and not own:
        return "what is not vmtune's own is exported read-only"
    return ""


def _removes_an_export(arguments: Arguments) -> str:
    known = set(arguments) <= {"id", "mode"} and _is_own(arguments.get("id"))
    return "" if known else "only vmtune's own exports are removed"


def _adds_a_node(arguments: Arguments) -> str:
    if not _is_own(arguments.get("node-name")):
        return f"the name of a node begins with {OWN}"
    driver, known = arguments.get("driver"), {"driver", "node-name"}
    if driver == "null-co":
        known |= {"size", "read-zeroes", "latency-ns"}
    elif driver in ("raw", "qcow2"):
        known |= {"file"}
        if not _is_own(arguments.get("file")):
            return "a format goes on a node of vmtune's own alone"
    elif driver == "nbd":
        known |= {"server", "export", "tls-creds", "tls-hostname"}
        if not _is_copy(arguments.get("node-name")) or not _is_copy(arguments.get("export")):
            return f"a node at another QEMU's begins with {COPY}"
        if not _is_server(arguments.get("server")):
            return f"another QEMU is reached by TCP, or by a unix socket called {SOCKET}"
    else:
        return "only scratch nodes are added"
    return "" if set(arguments) <= known else f"a {driver} node is added plain"


def _is_server(server: object) -> bool:
    if not isinstance(server, Mapping):
        return False
    if server.get("type") == "inet":
        return set(server) == {"type", "host", "port"}
    path = server.get("path")
    plain = set(server) == {"type", "path"} and server["type"] == "unix" and isinstance(path, str)
    return plain and PurePath(str(path)).name == SOCKET


def _removes_a_node(arguments: Arguments) -> str:
    return "" if _is_own(arguments.get("node-name")) else "only vmtune's own nodes are removed"


def _formats(arguments: Arguments) -> str:
    options = arguments.get("options")
    known = (
        set(arguments) == {"job-id", "options"}
        and _is_own(arguments["job-id"])
        and isinstance(options, Mapping)
        and set(options) <= {"driver", "file", "size", "preallocation"}
        and options.get("driver") == "qcow2"
        and _is_own(options.get("file"))
    )
    return "" if known else "only a node of vmtune's own is formatted, as qcow2"


def _forgets_a_job(arguments: Arguments) -> str:
    return "" if _is_own(arguments.get("id")) else "only vmtune's own jobs are dismissed"


def _mirrors(arguments: Arguments) -> str:
    names = {"job-id", "target"}
    known = {*names, "device", "sync", "auto-dismiss", "copy-mode", "speed"}
    fits = set(arguments) <= known and all(_is_copy(arguments.get(name)) for name in names)
    return "" if fits else "a disk is mirrored to a node of a copy alone"


def _ends_a_copy(arguments: Arguments) -> str:
    known = set(arguments) <= {"device", "force"} and _is_copy(arguments.get("device"))
    return "" if known else "only copies of disks are ended"


def _paces_a_copy(arguments: Arguments) -> str:
    speed = arguments.get("speed")
    known = set(arguments) == {"device", "speed"} and isinstance(speed, int) and speed >= 0
    known = known and _is_copying(arguments["device"])
    return "" if known else "only copies of disks are given another speed"


def _writes_along(arguments: Arguments) -> str:
    known = (
        set(arguments) == {"id", "type", "copy-mode"}
        and (arguments["type"], arguments["copy-mode"]) == ("mirror", "write-blocking")
        and _is_copying(arguments["id"])
    )
    return "" if known else "only copies of disks are told to let the guest's writes wait"


def _is_copying(job: object) -> bool:
    """A copy of vmtune's, or libvirt's of a migration (qemuAliasDiskDriveFromDisk)."""
    return _is_copy(job) or (isinstance(job, str) and job.startswith(LIBVIRT_COPY))


def _is_copy(name: object) -> bool:
    return isinstance(name, str) and name.startswith(COPY)


def _is_own(name: object) -> bool:
    return isinstance(name, str) and name.startswith(OWN)


GUARDS: Mapping[str, Callable[[Arguments], str]] = MappingProxyType(
    {
        "nbd-server-start": _listens,
        "block-export-add": _exports,
        "block-export-del": _removes_an_export,
        "blockdev-add": _adds_a_node,
        "blockdev-del": _removes_a_node,
        "blockdev-create": _formats,
        "job-dismiss": _forgets_a_job,
        "blockdev-mirror": _mirrors,
        "block-job-cancel": _ends_a_copy,
        "block-job-set-speed": _paces_a_copy,
        "block-job-change": _writes_along,
    }
)
"""What the arguments of a command have to be: why they are refused, empty where they are not."""
COMMANDS = (*ASKING, *UNGUARDED, *GUARDS)
