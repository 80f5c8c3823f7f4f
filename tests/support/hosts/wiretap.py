"""Counts the packets of a network namespace that hold something, until its input ends.

python -m tests.support.hosts.wiretap HEX
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.qemus.qemu import CHECKOUT

_ALL_PROTOCOLS = 0x0003  # ETH_P_ALL of linux/if_ether.h
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h
_BUFFER_BYTES = 64 << 20


class Heard:
    """What went by.

    :param needle: what is looked for.
    :param within: a command that enters a network namespace.
    """

    def __init__(self, needle: bytes, within: Sequence[str] = ()) -> None:
        self._command = [*within, sys.executable, "-m", __name__, needle.hex()]
        self.times = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """During the block; :attr:`times` is set after it."""
        with subprocess.Popen(
            self._command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield
            process.stdin.close()
            self.times = int(process.stdout.readline())


def main() -> None:
    needle = bytes.fromhex(sys.argv[1])
    times = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as own:
        own.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        own.setblocking(False)
        print("listening", flush=True)
        over = False
        while True:
            wanted = [own] if over else [own, sys.stdin]
            ready, _, _ = select.select(wanted, [], [], 0.2 if over else None)
            if own in ready:
                times += needle in own.recv(1 << 17)
            elif over:
                break
            if sys.stdin in ready:
                over = not os.read(0, 1)
    print(times, flush=True)


if __name__ == "__main__":
    main()
