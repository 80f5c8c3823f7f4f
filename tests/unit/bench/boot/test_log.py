"""What a booting QEMU says: the same marks however its streams are cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.boot.log import USER_SPACE, BootLog, Lines, Stopped
from vmtune.bench.model.runs.boot_record import MAX_TAIL, BootMarkName
from vmtune.bench.model.scenario.matrix_cells import BootGuest

RUNNING = "runstate_set current_run_state 6 (prelaunch) new_state 9 (running)\n"
SIGNATURE = "fw_cfg_select 0x55be420d6740 key 0x0000 'signature', ret: 1\n"
LOADS = "fw_cfg_select 0x55be420d6740 key 0x0014 'cmdline_size', ret: 1\n"
# QEMU 10.0 and 7.2.
REGION = "kvm_set_user_memory AddrSpace#0 Slot#0 flags=0x0 gpa=0x0 size=0x20000000 ret=0\n"
OLD_REGION = "kvm_set_user_memory Slot#1 flags=0x2 gpa=0xfffc0000 size=0x40000 ret=0\n"
WARNING = "qemu-system-x86_64: warning: host doesn't support requested feature: pni\n"
BANNER = "\x1b[2J\x1b[01;01H[    0.000000] Linux version 6.1.0-50-cloud-amd64 (debian) #1\r\n"
START = (
    "start region=1048576 stride=4096 idle_ms=1000 dirty_mb=0 zero=0 random=0 beat_ms=0 check=0 "
    "ring=0 skew=0 workers=1 address=2138112 tsc_khz=2595798\n"
)
DUMP = """KVM internal error. Suberror: 1
extra data[0]: 0x0000000000000001
emulation failure
EAX=00000000 EBX=00807000 ECX=00000001 EDX=00807154
ES =0008 00000000 ffffffff 00c09300 DPL=0 DS   [-WA]
CR0=40000033 CR2=00000000 CR3=00000000 CR4=00000640
Code=66 90 90 cd 03
runstate_set current_run_state 9 (running) new_state 2 (internal-error)
"""


def cut(text: str, at: list[int]) -> list[bytes]:
    """*text* in pieces."""
    data = text.encode()
    places = sorted({0, len(data), *(x % (len(data) + 1) for x in at)})
    return [data[a:b] for a, b in pairwise(places)]


cuts = st.lists(st.integers(0, 10_000), max_size=20)


@given(cuts, cuts)
def test_linux_with_kvm(errors_at: list[int], serial_at: list[int]) -> None:
    log = BootLog(BootGuest.LINUX, count_regions=True)
    text = WARNING + REGION + SIGNATURE + LOADS + REGION + RUNNING + OLD_REGION + SIGNATURE + LOADS
    for number, piece in enumerate(cut(text, errors_at)):
        log.add_errors(piece, number)
    for number, piece in enumerate(cut(BANNER + f"{USER_SPACE}\r\nmore", serial_at)):
        log.add_serial(piece, 100 + number)
    assert list(log.marks) == list(BootMarkName)
    assert log.regions == 3
    assert [mark.region_updates for mark in log.marks.values()] == [2, 3, 3, 3, 3]
    times = [mark.at_ms for mark in log.marks.values()]
    assert times == sorted(times)
    assert log.booted
    assert (log.stopped, log.fault, log.said()) == (None, "", "")


@given(cuts)
def test_the_projects_guest(serial_at: list[int]) -> None:
    log = BootLog(BootGuest.PROJECT, count_regions=False)
    for number, piece in enumerate(cut("SeaBIOS\r\nguest\n" + START, serial_at)):
        log.add_serial(piece, number)
    assert list(log.marks) == [BootMarkName.KERNEL, BootMarkName.USER_SPACE]
    assert log.regions is None


def test_what_qemu_does_before_the_guest_runs_is_not_the_firmwares() -> None:
    log = BootLog(BootGuest.LINUX, count_regions=False)
    log.add_errors((SIGNATURE + LOADS).encode(), 1)
    assert not log.marks


def test_the_first_time_counts() -> None:
    log = BootLog(BootGuest.LINUX, count_regions=False)
    log.add_errors(RUNNING.encode(), 1)
    log.add_errors(RUNNING.encode(), 2)
    assert log.marks[BootMarkName.GUEST].at_ms == 1


def test_words_of_user_space_before_the_kernels_are_an_echo() -> None:
    log = BootLog(BootGuest.LINUX, count_regions=False)
    log.add_serial(f"{USER_SPACE}\n".encode(), 1)
    assert not log.booted


def test_trace_lines_with_a_time_stamp() -> None:
    log = BootLog(BootGuest.LINUX, count_regions=True)
    log.add_errors(f"4372@1795312876.256528:{REGION}4372@1795312876.5:{RUNNING}".encode(), 1)
    assert log.regions == 1
    assert list(log.marks) == [BootMarkName.GUEST]


@given(cuts)
def test_a_stopped_guest_is_told_without_its_registers(at: list[int]) -> None:
    log = BootLog(BootGuest.LINUX, count_regions=False)
    for piece in cut(RUNNING + DUMP, at):
        log.add_errors(piece, 1)
    assert log.stopped is Stopped.INTERNAL_ERROR
    assert log.said() == "KVM internal error. Suberror: 1; emulation failure"


def test_words_without_a_line_end_count_at_the_end() -> None:
    log = BootLog(BootGuest.LINUX, count_regions=False)
    log.add_errors(b"qemu: no such machine", 1)
    assert log.said() == ""
    log.add_errors(b"", 2)
    assert log.said() == "qemu: no such machine"


def test_a_panic_and_a_fault() -> None:
    linux = BootLog(BootGuest.LINUX, count_regions=False)
    linux.add_serial(b"[ 1.2] Kernel panic - not syncing: No working init found.\r\n", 1)
    assert linux.fault == "Kernel panic - not syncing: No working init found."
    project = BootLog(BootGuest.PROJECT, count_regions=False)
    project.add_serial(b"error vcpus: only 1 have started\n", 1)
    assert project.fault == "vcpus: only 1 have started"


@given(st.binary(max_size=400), st.sampled_from(BootGuest))
def test_anything_can_come(data: bytes, guest: BootGuest) -> None:
    log = BootLog(guest, count_regions=True)
    log.add_errors(data, 1)
    log.add_serial(data, 1)
    log.add_errors(b"", 1)
    assert len(log.serial_tail) <= MAX_TAIL
    assert "\0" not in log.serial_tail + log.said() + log.last_words()


@given(st.lists(st.binary(max_size=300)), cuts)
def test_lines(lines: list[bytes], at: list[int]) -> None:
    data = b"\n".join(lines)
    places = sorted({0, len(data), *(x % (len(data) + 1) for x in at)})
    taken = Lines()
    got = []
    for a, b in pairwise(places):
        got += taken.add(data[a:b])
    expected = [line.decode(errors="replace") for line in data.split(b"\n")]
    assert got + taken.end() == (expected if expected[-1] else expected[:-1])
    assert taken.tail == data[-MAX_TAIL:].decode(errors="replace")[-MAX_TAIL:]


def test_a_line_that_never_ends_is_not_kept_for_ever() -> None:
    lines = Lines()
    got = [line for _ in range(100) for line in lines.add(b"x" * 1000)]
    assert len(got) >= 100_000 // (MAX_TAIL + 1000) - 1
    assert len("".join(got + lines.end())) == 100_000
