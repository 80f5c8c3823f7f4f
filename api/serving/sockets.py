"""The sockets on which the service listens, and the lock against a second service."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vmtune.config.settings import Settings, is_loopback
from vmtune.errors import SetupError
from vmtune.services.access.users import group_id

_PRIVATE_UMASK = 0o177  # leaves 0600
_GROUP_MODE = 0o660
_RUNTIME_MODE = 0o755
_STATE_MODE = 0o750
_BACKLOG = 128
_FIRST_PASSED = 3  # sd_listen_fds(3)
_WORLD_WRITABLE = 0o002


def make_folder(path: Path, mode: int, setting: str) -> None:
    """Create a folder where it is missing.

    :raise SetupError: it cannot be created.
    """
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"the folder {path} cannot be created: {error.strerror}",
            field=setting,
            remedy=f"run the service as a user that may, or set {setting} to another folder",
        ) from error


@contextmanager
def state_lock(settings: Settings) -> Iterator[None]:
    """Hold the state for this service alone.

    :raise SetupError: another service has it.
    """
    make_folder(settings.state_dir, _STATE_MODE, "state_dir")
    path = settings.state_dir / "service.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SetupError(
            f"{path} cannot be opened: {error.strerror}",
            field="state_dir",
            remedy="run the service as the user that owns the folder, or set state_dir",
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
            raise SetupError(
                f"another vmtune service uses {settings.state_dir} (process {holder})",
                field="state_dir",
                code="already_running",
                remedy="stop that service, or set another state_dir",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)  # the file stays: removing it could take it from under another's lock


@contextmanager
def listening(settings: Settings) -> Iterator[list[socket.socket]]:
    """The service's sockets, listening from now on: clients wait until it is ready.

    A unix socket that systemd passed is used instead of a new one, and its file belongs to systemd;
    likewise TCP sockets. The file of a socket made here is removed at the end.

    :raise SetupError: another service listens there, the port is taken, or the socket
        cannot be made, or not safely.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in passed_sockets()]
        check_passed(sockets, settings)
        families = {one.family for one in sockets}
        if socket.AF_UNIX not in families:
            sockets.append(stack.enter_context(_unix_socket(settings)))
        if settings.listen_port and not families - {socket.AF_UNIX}:
            tcp = _bind_tcp(settings.listen_address, settings.listen_port)
            sockets.append(stack.enter_context(tcp))
        yield sockets


@contextmanager
def _unix_socket(settings: Settings) -> Iterator[socket.socket]:
    path = settings.socket_path
    make_folder(path.parent, _RUNTIME_MODE, "runtime_dir")
    check_folder(path.parent)
    _remove_stale(path)
    with _bind_unix(path, settings.socket_group) as one:
        made = path.stat()
        try:
            yield one
        finally:
            if path.exists() and os.path.samestat(path.stat(), made):
                path.unlink()


def check_passed(sockets: Sequence[socket.socket], settings: Settings) -> None:
    """Hold passed sockets to what the settings are held to: tokens do not cross a network in
    the clear.

    :raise SetupError: one would let them.
    """
    for one in sockets:
        if one.family == socket.AF_UNIX or settings.tls or settings.insecure_listen:
            continue
        address = str(one.getsockname()[0])
        if not is_loopback(address):
            raise SetupError(
                f"systemd passed a socket at {address}: tokens would cross the network in the "
                "clear",
                field="LISTEN_FDS",
                code="insecure_listener",
                remedy="set tls_cert and tls_key, or allow it with insecure_listen = true",
            )


def passed_sockets() -> list[socket.socket]:
    """The listening sockets that systemd passed to this process (sd_listen_fds(3)).

    :raise SetupError: one of them is not a listening stream socket.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = os.environ.get("LISTEN_FDS", "")
    passed: list[socket.socket] = []
    for number in range(_FIRST_PASSED, _FIRST_PASSED + (int(count) if count.isdigit() else 0)):
        try:
            one = socket.socket(fileno=number)
            listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError:
            listens = 0
        if not listens or one.type != socket.SOCK_STREAM:
            raise SetupError(
                f"the descriptor {number} that systemd passed is not a listening stream socket",
                field="LISTEN_FDS",
                remedy="use only ListenStream= lines in the .socket unit",
            )
        one.set_inheritable(False)
        one.setblocking(False)
        passed.append(one)
    return passed


def check_folder(folder: Path) -> None:
    """Refuse a folder in which, or in place of which, another user could put a socket: clients
    would talk to that, also root's.

    :raise SetupError: the folder is a symbolic link, or it or a parent belongs to another user or
        is writable by everybody.
    """
    for place in (folder, *folder.parents):
        found = place.lstat()
        link = stat.S_ISLNK(found.st_mode)
        why = ""
        if link and place == folder:
            why = "is a symbolic link"
        elif found.st_uid not in (0, os.geteuid()):
            why = f"belongs to user {found.st_uid}"
        elif not link and found.st_mode & _WORLD_WRITABLE and not found.st_mode & stat.S_ISVTX:
            why = "is writable by all users"
        if why:
            raise SetupError(
                f"{place} {why}: another user could create a socket there",
                field="socket_path",
                code="unsafe_folder",
                remedy="set socket_path into a folder that belongs to root or to the service's "
                "user, such as /run/vmtune",
            )


def _remove_stale(path: Path) -> None:
    """Remove a socket without a listener."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SetupError(
            f"{path} exists and is not a socket",
            field="socket_path",
            remedy="move it away, or set socket_path",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise _socket_error(path, error) from error
    raise SetupError(
        f"another service listens at {path}",
        field="socket_path",
        code="already_running",
        remedy="stop that service, or set socket_path",
    )


def _bind_unix(path: Path, group: str) -> socket.socket:
    """The unix socket: for its owner alone, and for the members of *group*."""
    number = group_id(group) if group else -1
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(_PRIVATE_UMASK)  # so that no other user can connect, not for a moment
    try:
        one.bind(str(path))
        if group:
            os.chown(path, -1, number)
            path.chmod(_GROUP_MODE)
        one.listen(_BACKLOG)
    except OSError as error:
        one.close()
        raise _socket_error(path, error) from error
    finally:
        os.umask(before)
    return one


def _socket_error(path: Path, error: OSError) -> SetupError:
    return SetupError(
        f"the socket {path} cannot be used: {error.strerror or error}",
        field="socket_path",
        remedy="run the service as a user that may, or set socket_path",
    )


def _bind_tcp(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Named as TCP, or asyncio would leave Nagle's algorithm on: answers would come 40 ms late.
    one = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((address, port))
        one.listen(_BACKLOG)
    except OSError as error:
        one.close()
        taken = error.errno == errno.EADDRINUSE
        raise SetupError(
            f"port {port} of {address} "
            + ("is taken by another program" if taken else f"cannot be used: {error.strerror}"),
            field="listen_port",
            code="port_taken" if taken else "port_refused",
            remedy="set listen_port to a free port, or to 0 to listen only on the unix socket",
        ) from error
    return one
