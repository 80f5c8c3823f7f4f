"""A Debian folder that boots: systemd is process 1 of namespaces of their own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Its processes end with the first of them, and its mounts and network with the last.
_NAMESPACES = (
    *("unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"),
    *("--fork", "--kill-child"),
)
_INIT = """
set -eu
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
cd "$2/root"
mount --bind "$3" mnt
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
while read -r name mode major minor; do mknod -m "$mode" "dev/$name" c "$major" "$minor"; done <<END
null 666 1 3
zero 666 1 5
full 666 1 7
random 666 1 8
urandom 666 1 9
tty 666 5 0
END
if [ -e /dev/kvm ]; then
    mknod -m 660 dev/kvm c 10 232
    # Before udev or QEMU is installed there is no such group.
    chown "0:$(awk -F : '$1 == "kvm" { id = $3 } END { print id + 0 }' etc/group)" dev/kvm
fi
ip link set lo up
hostname booted
pivot_root . .
umount -l .
cd /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init </dev/null
"""


@dataclass(frozen=True, slots=True)
class Booted:
    """A Debian that has booted.

    :param init: its first process, by the number that it has outside.
    """

    init: int

    def run(self, script: str, *, fails: bool = False, within_s: float = 300) -> str:
        """What *script* says, run by root in it."""
        print("\n# booted\n" + "\n".join(f"  {line}" for line in script.strip().splitlines()))
        ran = subprocess.run(
            [
                *("nsenter", "--target", str(self.init), "--all", "env", "-i", "HOME=/root"),
                *("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"),
                *("DEBIAN_FRONTEND=noninteractive", "sh", "-euc", script),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=within_s,
        )
        print("\n".join(f"  > {line}" for line in ran.stdout.splitlines()[-40:]), flush=True)
        assert (ran.returncode != 0) == fails, f"exit code {ran.returncode}"
        return ran.stdout

    def shown(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit."""
        asked = " ".join(f"-p {name}" for name in names)
        lines = self.run(f"systemctl show {asked} {unit}").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, test: str, what: str, within_s: float = 120) -> None:
        """Wait until the command *test* succeeds in it."""
        script = f"for _ in $(seq {within_s * 5:.0f}); do ! {test} || exit 0; sleep 0.2; done; "
        self.run(f"{script} echo still waiting for {what}; exit 1", within_s=within_s + 60)


@contextmanager
def booted(base: str, layer: Path, shared: Path) -> Iterator[Booted]:
    """Boot it, and have nothing of it left afterwards.

    :param base: the layers below, uppermost first, with colons between them; with systemd-sysv.
    :param shared: a folder of the tests, which is /mnt in it.
    """
    for name in ("upper", "work", "root"):
        (layer / name).mkdir(parents=True, exist_ok=True)
    cgroup = _cgroups() / f"vmtune-test-{os.getpid()}"
    cgroup.mkdir()
    made = [*_NAMESPACES, "sh", "-c", _INIT, "sh", base, str(layer), str(shared)]
    try:
        # A shell goes into the control group before it becomes what makes the namespaces.
        with subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0"; exec "$@"', str(cgroup / "cgroup.procs"), *made],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process:
            try:
                system = Booted(_child(process))
                system.until("systemctl is-system-running >/dev/null 2>&1", "it to boot")
                yield system
            finally:
                process.kill()
    finally:
        _remove(cgroup)


def _cgroups() -> Path:
    """Where the kernel's second version of control groups is mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    raise AssertionError("no cgroup2 file system is mounted: systemd cannot boot")


def _child(process: subprocess.Popen[bytes]) -> int:
    """systemd, once it is: it is the only child of what made its namespaces."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, "it did not come up; see above"
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                return int(pid)
        time.sleep(0.05)
    raise AssertionError("systemd does not start")


def _remove(cgroup: Path) -> None:
    """The group and those below, once the kernel has ended what was in them."""
    deadline = time.monotonic() + 30
    while "populated 1" in (cgroup / "cgroup.events").read_text():
        assert time.monotonic() < deadline, "something of it still runs"
        time.sleep(0.05)
    for folder, _, _ in os.walk(cgroup, topdown=False):
        Path(folder).rmdir()
