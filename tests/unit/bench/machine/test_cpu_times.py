"""CPU time of a process by its threads' names."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.machine.cpu_times import KINDS, QemuCpu, Tally, kind_of
from vmtune.bench.model.runs.run import HostSide


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CPU 0/KVM", "vcpu"),
        ("CPU 11/TCG", "vcpu"),
        ("live_migration", "migration"),
        ("return path", "migration"),
        ("mig/src/main", "migration"),
        ("mig/src/rp-thr", "migration"),
        ("mig/dst/preempt", "migration"),
        ("postcopy/listen", "migration"),
        ("multifdsend_0", "multifd"),
        ("multifdrecv_12", "multifd"),
        ("mig/src/send_10", "multifd"),
        ("mig/dst/recv_3", "multifd"),
        ("compress", "multifd"),
        ("decompress", "multifd"),
        ("qemu-system-x86", "other"),
        ("worker", "other"),
        ("call_rcu", "other"),
    ],
)
def test_threads_by_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


PROGRAM = """
import sys, threading, time

def thread(name, seconds, ended):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write(name)
    named.release()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    print(name, flush=True)
    ended.acquire()

named = threading.Semaphore(0)
ends = threading.Semaphore(0)
threads = []
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "start":
        threads.append(threading.Thread(target=thread, args=(rest, 0.05, ends)))
        threads[-1].start()
        named.acquire()
    else:
        for each in threads:
            ends.release()
        for each in threads:
            each.join()
        threads.clear()
        print("ended", flush=True)
"""


class Child:
    """A process whose threads begin, use CPU time and end as the test says."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, line: str, answer: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        while self.process.stdout.readline() != answer + "\n":
            assert self.process.poll() is None

    def end_threads(self) -> None:
        """All but the main one, until the kernel has forgotten them: joined is not yet gone."""
        self.say("end", "ended")
        while len(os.listdir(f"/proc/{self.process.pid}/task")) > 1:
            time.sleep(0.001)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_each_kind_of_a_real_process() -> None:
    child = Child()
    cpu = QemuCpu(child.process.pid, HostSide.SOURCE)
    try:
        for name in ("CPU 0/KVM", "live_migration", "multifdsend_0", "worker"):
            child.say(f"start {name}", name)
        first = cpu.sample(1, migrating=True)
        assert first is not None
        assert (first.at_ms, first.side) == (1, HostSide.SOURCE)
        for used in (first.vcpu_ms, first.migration_ms, first.multifd_ms):
            assert 49 <= used < 200
        # What has ended stays, as the kind that it was.
        child.end_threads()
        later = cpu.sample(2, migrating=True)
        assert later is not None
        assert later.migration_ms >= first.migration_ms
        assert later.vcpu_ms >= first.vcpu_ms
        # One that nobody has seen alive is the migration's while there is one.
        child.say("start live_migration", "live_migration")
        child.end_threads()
        skipped_checks = cpu.sample(3, migrating=True)
        assert skipped_checks is not None
        assert skipped_checks.migration_ms >= later.migration_ms + 49
        assert skipped_checks.total_ms >= 5 * 49
    finally:
        child.end()
        assert cpu.sample(4, migrating=False) is None
        cpu.close()


@pytest.mark.parametrize(("name", "sends"), [("multifdsend_0", True), ("worker", False)])
def test_system_time_is_that_of_the_threads_that_send(name: str, sends: bool) -> None:
    over = threading.Event()
    named = threading.Event()

    def work() -> None:
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
        named.set()
        with open("/dev/urandom", "rb", buffering=0) as random:
            while not over.is_set():
                random.read(1 << 20)

    thread = threading.Thread(target=work)
    thread.start()
    cpu = QemuCpu(os.getpid(), HostSide.SOURCE)
    try:
        assert named.wait(60)
        deadline = time.monotonic() + 60
        while (sample := cpu.sample(1, migrating=False)) and sample.total_ms:
            busy = sample.multifd_ms if sends else sample.other_ms
            system = sample.send_system_ms or 0
            assert system <= sample.multifd_ms + 20  # of the kernel's steps
            if busy > 300 and (system > 100 or not sends):
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert sample is not None and bool(sample.send_system_ms) is sends
        over.set()
        thread.join()
        later = cpu.sample(2, migrating=False)  # of a thread that has ended it stays
        assert later is not None and later.send_system_ms is not None
        assert later.send_system_ms >= (sample.send_system_ms or 0)
    finally:
        over.set()
        thread.join()
        # Joined is not yet gone: the next case would find it among the process's threads.
        while Path(f"/proc/self/task/{thread.native_id}").exists():
            time.sleep(0.001)
        cpu.close()


def test_it_closes_what_it_opened() -> None:
    before = set(os.listdir("/proc/self/fd"))
    cpu = QemuCpu(os.getpid(), HostSide.DESTINATION)
    assert cpu.sample(0, migrating=False) is not None
    assert set(os.listdir("/proc/self/fd")) > before
    cpu.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_kernel_without_schedstat(tmp_path: Path) -> None:
    pid = os.getpid()
    thread = tmp_path / str(pid) / "task" / str(pid)
    thread.mkdir(parents=True)
    (thread / "comm").write_text("CPU 0/KVM\n")
    fields = ["0"] * 50
    fields[11:13] = ["150", "50"]
    (thread / "stat").write_text(f"{pid} (CPU 0) R)/KVM) " + " ".join(fields))
    cpu = QemuCpu(pid, HostSide.SOURCE, proc=tmp_path)
    sample = cpu.sample(0, migrating=False)
    cpu.close()
    assert sample is not None
    assert sample.vcpu_ms == 200 * 1000 / os.sysconf("SC_CLK_TCK")


@st.composite
def histories(
    draw: st.DrawFn,
) -> list[tuple[dict[int, tuple[str, int]], int, dict[str, int]]]:
    """Looks at threads that use time, come and go; the truth beside each."""
    living: dict[int, tuple[str, int]] = {}
    truth = dict.fromkeys(KINDS, 0)
    looks = []
    for tid in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            living[tid] = (draw(st.sampled_from(KINDS)), 0)
        for each, (kind, used) in tuple(living.items()):
            more = draw(st.integers(0, 1000))
            truth[kind] += more
            living[each] = kind, used + more
            if draw(st.integers(0, 4)) == 0:
                del living[each]
        looks.append((dict(living), sum(truth.values()), dict(truth)))
    return looks


@given(histories())
def test_no_time_is_lost_and_none_goes_back(
    looks: list[tuple[dict[int, tuple[str, int]], int, dict[str, int]]],
) -> None:
    tally = Tally()
    before = dict.fromkeys(KINDS, 0)
    for threads, total, _truth in looks:
        now = tally.take(threads, total, "migration")
        assert all(now[kind] >= before[kind] for kind in KINDS)
        # Rounding by shares may leave a nanosecond for each thread to the next look.
        assert total - len(looks) <= sum(now.values()) <= total
        before = now
