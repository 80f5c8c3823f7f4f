"""Names, addresses and URIs: what a text may say."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.host import network
from vmtune.model.host.network import DirectAddress, direct_address
from vmtune.model.tunables import cpu_lists, texts
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.cpu_lists import format_set, parse_set


@pytest.mark.parametrize("module", [texts, network, cpu_lists], ids=lambda m: m.__name__)
def test_the_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # modules


@pytest.mark.parametrize(
    "text",
    ["10.0.0.2", "0.0.0.0", "::", "fd00::2", "b", "b.example", "{host}", "{hostname}.example",
     "mig-{host}"],
)  # fmt: skip
def test_addresses(text: str) -> None:
    assert BUILT_IN["listen_address"].accept(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.300", "10.0.0", "[fd00::2]", "fd00::2%eth0", "b example", "{guest}", "{host",
     "b:49152", "tcp://b", "-b", "b;id", "b\n", "é.example", "a" * 254],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="an IP address without brackets, or a host name"):
        BUILT_IN["listen_address"].accept(text)


@pytest.mark.parametrize(
    "text",
    ["tcp://10.0.0.2", "tcp://b.example:49152", "tcp://[fd00::2]", "tcp://[fd00::2]:49152",
     "tcp://{host}.example"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["migrate_uri", "disks_uri"])
def test_uris(name: str, text: str) -> None:
    assert BUILT_IN[name].accept(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.2", "tcp:10.0.0.2", "tcp://", "tcp://fd00::2", "tcp://[10.0.0.2]", "tcp://b:0",
     "tcp://b:65536", "rdma://b", "unix:///run/x", "exec:id", "tcp://b/x", "tcp://a@b",
     "tcp://{guest}", "tcp://b\n"],
)  # fmt: skip
def test_what_is_no_uri(text: str) -> None:
    with pytest.raises(ValueError, match="tcp://ADDRESS"):
        BUILT_IN["migrate_uri"].accept(text)


@given(st.sets(st.integers(0, 4095), min_size=1))
def test_a_set_of_cpus_reads_back_as_it_was_written(numbers: set[int]) -> None:
    text = format_set(numbers)
    assert parse_set(text) == numbers
    assert BUILT_IN["emulator_cpus"].accept(text) == text
    backwards = ",".join(str(n) for n in sorted(numbers, reverse=True))
    assert BUILT_IN["vcpu_cpus"].accept(f"{backwards}/{text}") == text


@pytest.mark.parametrize(
    "text", ["", "1-", "-1", "3-1", "^1", "1,^1", "4096", "1 2", "a", "0-3,^1-2", "²", "1//2", "1/"]
)
@pytest.mark.parametrize("name", ["emulator_cpus", "vcpu_cpus", "numa_nodes"])
def test_what_is_no_set_of_cpus(name: str, text: str) -> None:
    with pytest.raises(ValueError, match="all, or numbers and ranges"):
        BUILT_IN[name].accept(text)


@pytest.mark.parametrize(
    ("values", "migration_address", "expected"),
    [
        ({}, "", DirectAddress("", "")),
        ({}, "10.0.0.1", DirectAddress("10.0.0.1", "10.0.0.1")),
        ({"migrate_uri": "tcp://10.0.0.2"}, "10.0.0.1", DirectAddress("10.0.0.2", "10.0.0.2")),
        ({"listen_address": "10.0.0.2"}, "10.0.0.1", DirectAddress("10.0.0.2", "10.0.0.2")),
        ({"listen_address": "0.0.0.0"}, "10.0.0.1", DirectAddress("0.0.0.0", "10.0.0.1")),
        ({"listen_address": "::"}, "", DirectAddress("::", "")),
        ({"migrate_uri": "tcp://[fd00::2]:7000"}, "", DirectAddress("fd00::2", "fd00::2", 7000)),
    ],
)
def test_where_two_qemus_without_libvirt_meet(
    values: dict[str, str], migration_address: str, expected: DirectAddress
) -> None:
    assert direct_address(values, migration_address) == expected


@pytest.mark.parametrize(
    ("listen", "connect", "expected"),
    [
        ("10.0.0.2", "10.0.0.9", "10.0.0.2"),
        ("0.0.0.0", "10.0.0.2", "10.0.0.2"),
        ("::", "[fd00::2]", "fd00::2"),
        ("[fd00::2]", "b.example", "fd00::2"),
        ("", "", ""),
    ],
)
def test_disks_are_never_taken_on_all_addresses(listen: str, connect: str, expected: str) -> None:
    assert DirectAddress(listen, connect).disks == expected
