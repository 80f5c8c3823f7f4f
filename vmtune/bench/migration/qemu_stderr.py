"""What a QEMU of a run writes to its standard error: its complaints, and trace lines that are
counted instead of kept.

With the trace event ``kvm_dirty_ring_full`` on, QEMU writes a line for each exit of a vCPU
whose dirty ring is full, of which there can be 90,000 a second. So the pipe is made large, read
in large pieces and seldom, and only counted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time
from array import array
from termios import FIONREAD

RING_FULL = "kvm_dirty_ring_full"
"""QEMU's trace event (accel/kvm/trace-events)."""
_MARK = RING_FULL.encode()
_WARNING = ": warning: "
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 20
_FLOOD_BYTES = 4096
_REST_S = 0.02
_KEPT_BYTES = 8192


class RingFullCounter:
    """Counts the trace's lines in pieces of a stream, and keeps the end of all others."""

    def __init__(self) -> None:
        self.count = 0
        self._rest = b""
        self._other = b""

    def add(self, data: bytes) -> None:
        """A piece, as it was read."""
        data = self._rest + data
        whole, newline, self._rest = data.rpartition(b"\n")
        whole += newline
        if len(self._rest) > _KEPT_BYTES:
            whole, self._rest = whole + self._rest, b""
        found = whole.count(_MARK)
        self.count += found
        if not found:
            self._other += whole
        elif found != whole.count(b"\n"):
            self._other += b"\n".join(x for x in whole.split(b"\n") if _MARK not in x)
        self._other = self._other[-_KEPT_BYTES:]

    def other(self) -> str:
        """The last of what was no trace, and no warning: those come with every start, and
        explain no end."""
        rest = b"" if _MARK in self._rest else self._rest
        lines = (self._other + rest).decode(errors="replace").splitlines()
        return "\n".join(line for line in lines if _WARNING not in line).strip()


class Stderr:
    """Reads one QEMU's standard error from its start to its end.

    Hand :attr:`write_end` to the process, then call :meth:`started`.
    """

    def __init__(self) -> None:
        self._counter = RingFullCounter()
        self._lock = threading.Lock()
        self._read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # the operator may allow less
            fcntl.fcntl(self._read_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._thread = threading.Thread(target=self._run, name="qemu stderr", daemon=True)

    def started(self) -> None:
        """The process has its own end now: read from it."""
        os.close(self.write_end)
        self._thread.start()

    def discard(self) -> None:
        """There is no process after all."""
        os.close(self.write_end)
        os.close(self._read_end)

    def close(self) -> None:
        """Call it when the process has ended: it reads what is left."""
        self._thread.join()
        os.close(self._read_end)

    def said(self) -> str:
        """The last of what QEMU wrote, without what is counted."""
        with self._lock:
            return self._counter.other()

    def ring_full_exits(self) -> int:
        """How many lines of the trace have been written so far."""
        while self._pending():
            time.sleep(_REST_S / 4)
        with self._lock:
            return self._counter.count

    def _pending(self) -> int:
        if not self._thread.is_alive():
            return 0
        waiting = array("i", [0])
        fcntl.ioctl(self._read_end, FIONREAD, waiting)
        return waiting[0]

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        while True:
            poll.poll()
            with self._lock:  # a reader that finds the pipe empty finds it counted, too
                data = os.read(self._read_end, _READ_BYTES)
                self._counter.add(data)
            if not data:
                return
            if len(data) >= _FLOOD_BYTES:
                time.sleep(_REST_S)
