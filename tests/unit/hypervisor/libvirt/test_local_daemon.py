"""What is known of a daemon on this machine, by its process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.hypervisor.libvirt.connections import VM
from vmtune.hypervisor.libvirt.host import LocalDaemon, find_local_daemon


class TestLocalDaemon:
    """This process as the daemon behind a socket."""

    @staticmethod
    @contextmanager
    def listening(folder: Path) -> Iterator[Path]:
        path = folder / "sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            yield path

    def test_it_is_found_by_its_socket(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            daemon = find_local_daemon(f"qemu+unix:///system?socket={path}")
        assert daemon == LocalDaemon(os.getpid())

    def test_a_session_is_not_looked_for(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            assert find_local_daemon(f"qemu+unix:///session?socket={path}") is None

    def test_a_remote_one_has_no_process_here(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            assert find_local_daemon(f"qemu+tcp://b/system?socket={path}") is None

    def test_its_network_is_this_one(self) -> None:
        value = int(Path("/proc/sys/net/core/optmem_max").read_text())
        assert LocalDaemon(os.getpid()).optmem_max_bytes() == value

    def test_who_has_ended_tells_nothing(self) -> None:
        daemon = LocalDaemon(1 << 30)  # more than the kernel gives out
        assert daemon.can_lock_beyond_limits() is None
        assert daemon.optmem_max_bytes() is None
        assert daemon.qemu("guest", str(VM)) is None
