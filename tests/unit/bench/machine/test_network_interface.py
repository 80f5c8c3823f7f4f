"""The interface to an address: the kernel's answers, real and broken."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.machine.network_interface import (
    OFFLOADS,
    driver_of,
    interface_to,
    offloads_of,
    outgoing_index,
    route_request,
    speed_of,
)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "localhost"])
def test_this_machine_is_reached_by_its_loopback(address: str) -> None:
    found = interface_to(address)
    assert found is not None
    assert found.loopback
    assert found.name == "lo"
    assert found.mtu
    assert found.offloads["tx-scatter-gather"] is True
    assert found.offloads.keys() <= set(OFFLOADS)


def test_an_address_that_leads_nowhere_has_none() -> None:
    assert interface_to("nowhere.invalid") is None
    assert interface_to("255.255.255.256") is None


def test_a_question_names_the_address() -> None:
    for text, family in (("10.1.2.3", socket.AF_INET), ("fe80::1", socket.AF_INET6)):
        address = ipaddress.ip_address(text)
        message = route_request(address)
        assert struct.unpack_from("=IH", message) == (len(message), 26)
        assert message[16] == family
        assert message[17] == address.max_prefixlen
        assert message.endswith(address.packed)


def _reply(*attributes: tuple[int, bytes]) -> bytes:
    body = b"".join(
        (struct.pack("=HH", 4 + len(value), name) + value).ljust((4 + len(value) + 3) & ~3, b"\0")
        for name, value in attributes
    )
    return struct.pack("=IHHII", 28 + len(body), 24, 0, 1, 0) + bytes(12) + body


@given(
    st.lists(st.tuples(st.integers(5, 30), st.binary(max_size=20))),
    st.integers(1, 1 << 31),
    st.lists(st.tuples(st.integers(5, 30), st.binary(max_size=20))),
)
def test_the_interface_is_found_among_other_attributes(
    before: list[tuple[int, bytes]], index: int, after: list[tuple[int, bytes]]
) -> None:
    wanted = (4, struct.pack("=I", index))
    assert outgoing_index(_reply(*before, wanted, *after)) == index
    assert outgoing_index(_reply(*before, *after)) is None


@given(st.binary(max_size=200))
def test_no_answer_breaks_it(reply: bytes) -> None:
    outgoing_index(reply)
    outgoing_index(_reply()[:28] + reply)
    speed_of(reply)
    assert len(driver_of(reply)) == 3
    assert offloads_of(reply, reply).keys() <= set(OFFLOADS)


def test_a_route_that_there_is_not_is_an_error_of_the_kernel() -> None:
    assert outgoing_index(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -101) + bytes(20)) is None


@pytest.mark.parametrize(
    ("low", "high", "mbit"),
    [(10_000, 0, 10_000), (34_464, 1, 100_000), (0xFFFF, 0xFFFF, None), (0, 0, None),
     (0xFFFF, 0, None)],
)  # fmt: skip
def test_speeds(low: int, high: int, mbit: int | None) -> None:
    settings = bytearray(44)
    struct.pack_into("=H", settings, 12, low)
    struct.pack_into("=H", settings, 28, high)
    assert speed_of(bytes(settings)) == mbit


def test_a_driver_and_its_firmware() -> None:
    def info(version: bytes) -> bytes:
        parts = (b"mlx5_core", version, b"22.31.1014")
        return bytes(4) + b"".join(part.ljust(32, b"\0") for part in parts) + bytes(96)

    assert driver_of(info(b"24.10")) == ("mlx5_core", "24.10", "22.31.1014")
    assert driver_of(info(os.uname().release.encode())) == ("mlx5_core", "", "22.31.1014")


@given(st.lists(st.booleans(), min_size=40, max_size=70))
def test_each_offload_has_its_bit(active: list[bool]) -> None:
    names = [OFFLOADS[n] if n < len(OFFLOADS) else f"other-{n}" for n in range(len(active))]
    names.reverse()
    strings = bytes(12) + b"".join(name.encode().ljust(32, b"\0") for name in names)
    bits = bytearray(8)
    for start in range(0, len(active), 32):
        word = sum(on << n for n, on in enumerate(active[start : start + 32]))
        bits += struct.pack("=4I", 0xFFFFFFFF, 0, word, 0)
    found = offloads_of(strings, bytes(bits))
    assert found == {name: on for name, on in zip(names, active, strict=True) if name in OFFLOADS}


def test_an_offload_that_the_card_lacks_is_not_told() -> None:
    strings = bytes(12) + OFFLOADS[0].encode().ljust(32, b"\0")
    assert offloads_of(strings, bytes(8) + struct.pack("=4I", 0, 1, 0, 0)) == {}
    assert offloads_of(strings, bytes(8) + struct.pack("=4I", 1, 1, 0, 0)) == {OFFLOADS[0]: False}
