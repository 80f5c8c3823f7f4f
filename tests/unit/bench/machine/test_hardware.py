"""Parsers of /proc and /sys: whatever is there, they answer, and the same for the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.machine.hardware import (
    SYSCTLS,
    boot_options,
    chosen,
    cpu,
    known,
    total_memory_bytes,
)

ARM = "\n\n".join(
    f"processor\t: {n}\nBogoMIPS\t: 50.0\nFeatures\t: fp\nCPU implementer\t: 0x41\n"
    f"CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0x{part}\nCPU revision\t: 1"
    for n, part in enumerate(("d0c", "d0c", "d05"))
)


def test_other_architectures_have_cpus_too() -> None:
    assert cpu(ARM) == {
        "count": 3, "vendor": "0x41", "model": "0xd05, 0xd0c", "family": "8",
        "model_number": "0x3", "stepping": "1",
    }  # fmt: skip


def test_sockets_are_counted() -> None:
    text = "\n\n".join(f"processor : {n}\nphysical id : {n % 2}" for n in range(4))
    assert cpu(text) == {"count": 4, "sockets": 2}


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert cpu(text)["count"] >= 0
    assert isinstance(boot_options(text), dict)
    assert total_memory_bytes(text) is None or text
    assert isinstance(chosen(text), str)


@given(
    st.lists(
        st.tuples(st.floats(1, 9999), st.floats(1, 9999), st.integers(0, 1)), min_size=1, max_size=4
    )
)
def test_speeds_of_the_moment_are_not_the_cpus(speeds: list[tuple[float, float, int]]) -> None:
    blocks = [
        f"processor : {n}\nmodel name : X @ {mhz / 1000:.2f}GHz\ncpu MHz : {mhz}\n"
        f"bogomips : {bogo}\nmicrocode : 0x{code}"
        for n, (mhz, bogo, code) in enumerate(speeds)
    ]
    found = cpu("\n\n".join(blocks))
    codes = sorted({f"0x{code}" for *_, code in speeds})
    assert found == {"count": len(speeds), "model": "X", "microcode": ", ".join(codes)}


@given(st.integers(1, 1 << 40), st.integers(0, 20_000))
def test_a_few_pages_do_not_change_the_memory_much(kib: int, less: int) -> None:
    step = 64 << 20
    whole = total_memory_bytes(f"MemTotal: {kib} kB\n")
    assert whole is not None
    assert whole % step == 0
    assert abs(whole - kib * 1024) <= step // 2
    assert total_memory_bytes(f"MemTotal: {max(0, kib - less)} kB") in (whole, whole - step)


def test_memory_that_is_no_number_is_unknown() -> None:
    assert total_memory_bytes("MemTotal:\n") is None
    assert total_memory_bytes("MemTotal: x kB") is None
    assert total_memory_bytes("") is None


def test_the_chosen_word() -> None:
    assert chosen("always defer defer+madvise [madvise] never\n") == "madvise"
    assert chosen("1\n") == "1"


def test_boot_options_of_no_matter_are_left_out() -> None:
    line = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 nosmt hugepagesz=2M hugepagesz=1G isolcpus=1,3 "
    assert boot_options(line + "console=ttyS0 -- mitigations=off") == {
        "nosmt": "on",
        "hugepagesz": "2M, 1G",
        "isolcpus": "1,3",
    }


def test_false_and_zero_are_known() -> None:
    assert known({"a": None, "b": "", "c": {}, "d": 0, "e": False}) == {"d": 0, "e": False}


def test_no_sysctl_is_computed_anew_at_boot() -> None:
    assert "net.ipv4.tcp_mem" not in SYSCTLS
    assert list(SYSCTLS) == sorted(set(SYSCTLS))
