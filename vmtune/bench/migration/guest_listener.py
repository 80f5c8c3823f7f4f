"""Listening to the guest of a run: its reports and its heartbeat, each with its time of arrival.

Both QEMUs connect their serial port and their debug console to two unix sockets. Only one of
them runs the guest at a time, so what comes is in order, whichever side it comes from: a line
that the source has begun is ended by the destination. A thread of its own takes the time, so
that the times hold also while the event loop is busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vmtune.bench.model.runs.run import GuestPass, Silence
from vmtune.lab.guest_serial import GuestEvent, GuestFault, GuestStart, parse_line
from vmtune.lab.guest_serial import GuestPass as ReportedPass

SERIAL, BEAT = "serial", "beat"
"""Names of the sockets in the run's folder."""
_MAX_SILENCES = 20_000
_LONGEST_LINE = 4096
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class GuestReport:
    """An event of the guest, and when it arrived (:func:`time.monotonic`)."""

    at: float
    event: GuestEvent


class Lines:
    """Puts lines together from pieces; what is no line is dropped."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """The lines that *data* ends."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        return [line.decode(errors="replace") for line in whole]


class Heartbeat:
    """Gaps between beats. Times are seconds of :func:`time.monotonic`.

    :param interval_ms: how often a beat is due; a gap of more than twice as long is kept.
    """

    def __init__(self, interval_ms: float) -> None:
        self.interval_ms = interval_ms
        self._last: float | None = None
        self._kept: list[tuple[float, float]] = []
        self._longest: tuple[float, float] | None = None
        self._watching = False

    def beat(self, at: float) -> None:
        """A beat arrived, or several at once."""
        if self._last is not None:
            self._gap(self._last, at)
        self._last = at

    def watch(self, on: bool) -> None:
        """Keep the longest gap, however short, of those that end while this is on."""
        if on:
            self._longest = None
        self._watching = on

    def forget(self) -> None:
        """Drop the gaps that ended before now."""
        self._kept.clear()
        self._longest = None

    def silences(self, until: float) -> list[tuple[float, float]]:
        """Begin and length in seconds of each gap kept, in order; the last one may not have
        ended."""
        found = set(self._kept)
        if self._longest is not None:
            found.add(self._longest)
        if self._last is not None and self._is_long(until - self._last):
            found.add((self._last, until - self._last))
        return sorted(found)

    def _gap(self, since: float, at: float) -> None:
        gap = (since, at - since)
        if self._watching and (self._longest is None or gap[1] > self._longest[1]):
            self._longest = gap
        if self._is_long(gap[1]) and len(self._kept) < _MAX_SILENCES:
            self._kept.append(gap)

    def _is_long(self, seconds: float) -> bool:
        return seconds * 1000 > 2 * self.interval_ms


class GuestListener:
    """Listens from its making to :meth:`close`.

    :param folder: where it makes its sockets.
    :param beat_ms: how often the guest's heart beats; 0: it has none.
    """

    def __init__(self, folder: Path, beat_ms: float) -> None:
        self.beat = Heartbeat(beat_ms) if beat_ms else None
        self._lines = Lines()
        self._reports: list[GuestReport] = []
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._selector = selectors.DefaultSelector()
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._selector.register(self._end, selectors.EVENT_READ, None)
        self._paths = [folder / SERIAL, folder / BEAT]
        for path, handler in zip(self._paths, (self._serial, self._beat), strict=True):
            self._listen(path, handler)
        self._thread = threading.Thread(target=self._run, name="guest listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. What has arrived stays."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        for key in tuple(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        os.close(self._end)
        for path in self._paths:
            path.unlink(missing_ok=True)

    def reports(self) -> list[GuestReport]:
        """All events so far."""
        with self._lock:
            return list(self._reports)

    def start(self) -> GuestReport | None:
        """When the guest began to work; None as long as it has not."""
        return next((h for h in self.reports() if isinstance(h.event, GuestStart)), None)

    def fault(self) -> GuestFault | None:
        """Why the guest has stopped for good; None as long as it has not."""
        faults = (h.event for h in self.reports() if isinstance(h.event, GuestFault))
        return next(faults, None)

    def passes(self, origin: float) -> tuple[GuestPass, ...]:
        """All passes that were reported, on the timeline that begins at *origin*."""
        start = self.start()
        if start is None:
            return ()
        return tuple(
            guest_pass(h.event, start.event, (h.at - origin) * 1000)
            for h in self.reports()
            if isinstance(h.event, ReportedPass) and isinstance(start.event, GuestStart)
        )

    def watch(self, on: bool) -> None:
        """See :meth:`Heartbeat.watch`."""
        if self.beat is not None:
            with self._lock:
                self.beat.watch(on)

    def forget_silences(self) -> None:
        """Drop those that ended before now: a guest that is measured several times has many."""
        if self.beat is not None:
            with self._lock:
                self.beat.forget()

    def silences(self, origin: float) -> tuple[Silence, ...]:
        """The heartbeat's gaps up to now, on the timeline that begins at *origin*."""
        if self.beat is None:
            return ()
        with self._lock:
            gaps = self.beat.silences(time.monotonic())
        return tuple(Silence((at - origin) * 1000, long * 1000) for at, long in gaps)

    async def wait_for_report(self, within_s: float) -> None:
        """Wait until the guest reports something, but not longer than *within_s*."""
        arrived = asyncio.Event()
        entry = (asyncio.get_running_loop(), arrived)
        with self._lock:
            self._waiting.append(entry)
        try:
            async with asyncio.timeout(within_s):
                await arrived.wait()
        except TimeoutError:
            return
        finally:
            with self._lock:
                self._waiting.remove(entry)

    def _listen(self, path: Path, handler: Callable[[bytes, float], None]) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            listener.bind(str(path))
            listener.listen()
        except OSError:
            listener.close()
            raise
        self._selector.register(listener, selectors.EVENT_READ, (True, handler))

    def _run(self) -> None:
        while True:
            ready = self._selector.select()
            at = time.monotonic()
            for key, _ in ready:
                if key.data is None:
                    return
                listens, handler = key.data
                assert isinstance(key.fileobj, socket.socket)
                if listens:
                    self._accept(key.fileobj, handler)
                else:
                    self._read(key.fileobj, handler, at)

    def _accept(self, listener: socket.socket, handler: Callable[[bytes, float], None]) -> None:
        with contextlib.suppress(OSError):  # the caller has gone again
            stream, _ = listener.accept()
            stream.setblocking(False)
            self._selector.register(stream, selectors.EVENT_READ, (False, handler))

    def _read(
        self, stream: socket.socket, handler: Callable[[bytes, float], None], at: float
    ) -> None:
        try:
            data = stream.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            handler(data, at)
        else:
            self._selector.unregister(stream)
            stream.close()

    def _beat(self, data: bytes, at: float) -> None:
        if self.beat is not None:
            with self._lock:
                self.beat.beat(at)

    def _serial(self, data: bytes, at: float) -> None:
        events = [parse_line(line) for line in self._lines.add(data)]
        reports = [GuestReport(at, event) for event in events if event is not None]
        if not reports:
            return
        with self._lock:
            self._reports += reports
            waiting = list(self._waiting)
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)


def guest_pass(reported: ReportedPass, start: GuestStart, at_ms: float) -> GuestPass:
    """A reported pass as it is recorded."""
    return GuestPass(
        reported.worker,
        reported.number,
        at_ms,
        reported.end_us,
        reported.duration_us,
        len(start.part(reported.worker)),
    )
