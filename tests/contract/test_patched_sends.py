"""What a real patched QEMU counts of the sends of its migrations. Where no patched QEMU is built,
all of this is skipped and says so."""

from __future__ import annotations

import os
import resource
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.test_patched_qemu import Refusing, started, wait_for
from tests.support.hosts.live import why_no_lab
from tests.support.qemus.patched_build import patched
from vmtune.lab.namespaces import add_namespace, delete_namespace, join_namespaces

WHY_NOT = patched().why_not
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")

MEMORY_BYTES = 64 << 20
LOCKED, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
NO_LOCK = (
    ""
    if LOCKED == resource.RLIM_INFINITY or LOCKED > 2 * MEMORY_BYTES or os.geteuid() == 0
    else "zero-copy locks the guest's memory, which this user may not"
)
ZERO_COPY = pytest.mark.skipif(bool(NO_LOCK), reason=NO_LOCK or "never")


NO_NAMESPACES = why_no_lab()


@contextmanager
def joined() -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Two network namespaces joined by a veth pair: how to run a program in each, and the second
    one's address."""
    token = secrets.token_hex(2)
    names = f"vt{token}a", f"vt{token}b"
    addresses = "10.99.7.1/24", "10.99.7.2/24"
    made: list[str] = []
    try:
        with Path(os.devnull).open() as nothing:
            for name in names:
                add_namespace(name, nothing.fileno())
                made.append(name)
        join_namespaces(names, addresses)
        a, b = (("ip", "netns", "exec", name) for name in names)
        yield a, b, addresses[1].partition("/")[0]
    finally:
        for name in made:
            delete_namespace(name)


@contextmanager
def pair(
    folder: Path, source_within: Sequence[str] = (), destination_within: Sequence[str] = ()
) -> Iterator[tuple[Refusing, Refusing]]:
    """A stopped guest whose memory is random, so that no page is sent as a zero page, and a
    destination for it."""
    memory = folder / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    memory.write_bytes(os.urandom(MEMORY_BYTES))
    shared = f"memory-backend-file,id=m,size={MEMORY_BYTES},mem-path={memory},share=on"
    machine = ("-machine", "pc,memory-backend=m", "-accel", "tcg", "-m", "64", "-nodefaults",
               "-display", "none", "-S")  # fmt: skip
    empty = ("-object", f"memory-backend-ram,id=m,size={MEMORY_BYTES}", "-incoming", "defer")
    with (
        started(folder / "a", *machine, "-object", shared, within=source_within) as (_, source),
        started(folder / "b", *machine, *empty, within=destination_within) as (_, destination),
    ):
        source.make()
        destination.make()
        yield source, destination


def migrated(
    folder: Path,
    a: Sequence[str] = (),
    b: Sequence[str] = (),
    address: str = "127.0.0.1",
    **capabilities: bool,
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What the source has counted, and what QEMU itself says was sent.

    :param a: a command that becomes the source; *b* the destination.
    """
    with pair(folder, a, b) as (source, destination):
        wanted = [
            {"capability": name.replace("_", "-"), "state": on} for name, on in capabilities.items()
        ]
        source.execute("migrate-set-capabilities", capabilities=wanted)
        there = [row for row in wanted if row["capability"] != "zero-copy-send"]
        destination.execute("migrate-set-capabilities", capabilities=there)
        if capabilities.get("multifd"):
            for side in (source, destination):
                side.execute("migrate-set-parameters", **{"multifd-channels": 2})
        source.execute("migrate-set-parameters", **{"max-bandwidth": 10 << 30})
        destination.execute("migrate-incoming", uri=f"tcp:{address}:0")
        (at,) = destination.execute("query-migrate")["socket-address"]
        source.execute("migrate", uri=f"tcp:{address}:{at['port']}")
        wait_for(lambda: _status(source) == "completed", "the migration to complete")
        sent = source.get("sends")
        assert set(destination.get("sends").values()) == {0}  # it has sent nothing
        return sent, source.execute("query-migrate")["ram"]


def _status(source: Refusing) -> str:
    said = source.execute("query-migrate")
    assert said.get("status") != "failed", said
    return str(said.get("status"))


@pytest.mark.parametrize("multifd", [False, True])
def test_copying_sends_are_counted_with_and_without_channels(tmp_path: Path, multifd: bool) -> None:
    sent, ram = migrated(tmp_path, multifd=multifd)
    assert sent["count"] > 0
    assert sent["bytes"] >= MEMORY_BYTES
    # What the main loop has sent as they connected is not theirs.
    assert abs(sent["bytes"] - ram["transferred"]) < 64 << 10
    assert sent["cpu-us"] > 0 and sent["time-us"] > 0
    assert {value for name, value in sent.items() if name.startswith(("zero", "flush"))} == {0}


@ZERO_COPY
def test_of_zero_copy_it_says_what_the_kernel_copied(tmp_path: Path) -> None:
    sent, ram = migrated(tmp_path, multifd=True, zero_copy_send=True)
    assert sent["bytes"] >= sent["zero-copy-bytes"] >= MEMORY_BYTES
    assert sent["count"] > sent["zero-copy-count"] > 0  # packets' headers go by calls of their own
    # Over loopback the kernel copies all of them.
    assert sent["zero-copy-copied"] == sent["zero-copy-count"]
    assert ram["dirty-sync-missed-zero-copy"] > 0
    assert sent["flush-count"] > 0
    assert sent["cpu-us"] > 0


@ZERO_COPY
@pytest.mark.skipif(bool(NO_NAMESPACES), reason=NO_NAMESPACES or "never")
def test_over_a_veth_pair_the_kernel_copies_all_of_it_too(tmp_path: Path) -> None:
    with joined() as (a, b, address):
        sent, _ = migrated(tmp_path, a, b, address, multifd=True, zero_copy_send=True)
    assert sent["zero-copy-bytes"] >= MEMORY_BYTES
    assert sent["zero-copy-copied"] == sent["zero-copy-count"] > 0
