"""Ports that lead out of a network namespace, or into one."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

from vmtune.bench.machine.network_interface import _enter
from vmtune.lab.namespaces import NETNS_FOLDER


@contextmanager
def relayed(namespace: str, port: int) -> Iterator[None]:
    """While the block runs, *port* of the loopback of *namespace* is this machine's."""
    with _relaying(
        _listening(namespace, port), lambda: socket.create_connection(("127.0.0.1", port))
    ):
        yield


@contextmanager
def relayed_from(namespace: str, port: int) -> Iterator[str]:
    """Where this machine's browsers find what listens at *port* of the loopback of *namespace*: an
    origin."""

    def connect() -> socket.socket:
        _enter(NETNS_FOLDER / namespace)  # the thread of this connection alone
        return socket.create_connection(("127.0.0.1", port))

    door = socket.create_server(("127.0.0.1", 0))
    with _relaying(door, connect):
        yield f"http://127.0.0.1:{door.getsockname()[1]}"


@contextmanager
def _relaying(door: socket.socket, connect: Callable[[], socket.socket]) -> Iterator[None]:
    with closing(door):
        accepting = threading.Thread(target=_accept, args=(door, connect), daemon=True)
        accepting.start()
        yield
        door.shutdown(socket.SHUT_RDWR)
        accepting.join(10)


def _listening(namespace: str, port: int) -> socket.socket:
    """A socket stays in the namespace in which it was made, whoever uses it."""

    def make() -> socket.socket:
        _enter(NETNS_FOLDER / namespace)  # this thread alone
        return socket.create_server(("127.0.0.1", port))

    with ThreadPoolExecutor(1) as alone:
        return alone.submit(make).result()


def _accept(door: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with suppress(OSError):  # the block has ended
        while True:
            near, _ = door.accept()
            threading.Thread(target=_pass, args=(near, connect), daemon=True).start()


def _pass(near: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with near, connect() as far, suppress(OSError):
        while True:
            ready, _, _ = select.select((near, far), (), ())
            for one in ready:
                data = one.recv(65536)
                if not data:
                    return
                (far if one is near else near).sendall(data)
