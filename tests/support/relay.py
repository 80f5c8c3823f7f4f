"""A port inside a network namespace that leads out to one of this machine."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

from vmtune.bench.machine.network_interface import _enter
from vmtune.lab.namespaces import NETNS_FOLDER


@contextmanager
def relayed(namespace: str, port: int) -> Iterator[None]:
    """While the block runs, *port* of the loopback of *namespace* is this machine's."""
    with closing(_listening(namespace, port)) as door:
        accepting = threading.Thread(target=_accept, args=(door, port), daemon=True)
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


def _accept(door: socket.socket, port: int) -> None:
    with suppress(OSError):  # the block has ended
        while True:
            near, _ = door.accept()
            threading.Thread(target=_pass, args=(near, port), daemon=True).start()


def _pass(near: socket.socket, port: int) -> None:
    with near, socket.create_connection(("127.0.0.1", port)) as far, suppress(OSError):
        while True:
            ready, _, _ = select.select((near, far), (), ())
            for one in ready:
                data = one.recv(65536)
                if not data:
                    return
                (far if one is near else near).sendall(data)
