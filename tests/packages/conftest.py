"""Empty Debian folders to try the package in.

Only `make test-deb` runs these tests: they take minutes, root and Debian's mirror.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packages.booted import Booted, booted

CHECKOUT = Path(__file__).parents[2]
RELEASES = {"12": "bookworm", "13": "trixie", "14": "forky"}
UPDATE = "apt-get update -q || echo going on with the lists of debootstrap"

# Mounts and processes are in namespaces that end with the command: nothing of them can stay.
_NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child")
_INSIDE = """
set -eu
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount --bind /dev "$2/root/dev"
mount --bind "$3" "$2/root/mnt"
ip link set lo up 2>/dev/null || true
export HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export DPKG_MAINTSCRIPT_PACKAGE=vmtune  # for scripts that are called as dpkg would
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$2/root" sh -euc "$4"
"""


@dataclass(frozen=True)
class Deb:
    """The package that is tested.

    :param debian: the number of the release that it is for.
    """

    path: Path
    debian: str

    @property
    def depends(self) -> str:
        """What it needs, in dpkg's words."""
        return subprocess.run(
            ["dpkg-deb", "-f", self.path, "Depends"], capture_output=True, text=True, check=True
        ).stdout.strip()


class Root:
    """A Debian folder; what is changed in it is in a layer of its own, over a shared one.

    :param base: the layers below, uppermost first, with colons between them.
    :param shared: a folder of the tests, which is /mnt in it.
    """

    def __init__(self, base: str, layer: Path, shared: Path) -> None:
        self._base, self._layer, self.shared = base, layer, shared
        for name in ("upper", "work", "root"):
            (layer / name).mkdir(parents=True, exist_ok=True)

    def run(
        self, script: str, *, network: bool = False, fails: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """What *script* says, run by root in the folder. Without *network* it has a loopback."""
        print(f"\n# {self._layer.name}")
        print("\n".join(f"  {line}" for line in script.strip().splitlines()), flush=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VMTUNE_", "PYTHON"))}
        ran = subprocess.run(
            [*_NAMESPACES, *([] if network else ["--net"]), "sh", "-c", _INSIDE, "sh",
             self._base, self._layer, self.shared, script],
            env=clean, capture_output=True, text=True, check=False,
            timeout=1800 if network else 600,
        )  # fmt: skip
        for stream in (ran.stdout, ran.stderr):
            print("\n".join(f"  > {line}" for line in stream.splitlines()[-40:]), flush=True)
        assert (ran.returncode != 0) == fails, f"exit code {ran.returncode}"
        return ran

    def files(self) -> dict[str, str]:
        """Every file: kind, mode, owner, target and digest, but for what dpkg notes of itself."""
        listed = self.run(
            r"""find / -xdev -path /mnt -prune -o -printf '%p\t%y %m %U:%G %l\n' >/mnt/.all
            find / -xdev -path /mnt -prune -o -type f -exec sha1sum {} + >/mnt/.sums"""
        )
        assert listed.returncode == 0
        lines = (self.shared / ".all").read_text().splitlines()
        found = dict(line.split("\t", 1) for line in lines)
        for line in (self.shared / ".sums").read_text().splitlines():
            digest, _, path = line.partition("  ")
            if not digest.startswith("\\"):  # a name with a backslash, which is written otherwise
                found[path] += f" {digest}"
        return {path: what for path, what in found.items() if not _NOTES.fullmatch(path)}


_NOTES = re.compile(
    r"/var/lib/dpkg/(status|diversions|triggers/.*|lock.*)(-old)?|/var/log/.*"
    r"|/var/cache/ldconfig/aux-cache|/etc/(passwd|group|shadow|gshadow)-|/etc/\.pwd\.lock"
)
"""What may differ afterwards: dpkg's own notes and log, the copies that userdel makes."""


@pytest.fixture(scope="session")
def deb() -> Deb:
    """The newest package in dist/, or the one that VMTUNE_TEST_DEB names."""
    made = sorted((CHECKOUT / "dist").glob("vmtune_*.deb"), key=lambda path: path.stat().st_mtime)
    named = os.environ.get("VMTUNE_TEST_DEB")
    assert named or made, "there is no package in dist/: make deb"
    path = Path(named) if named else made[-1]
    found = re.search(r"\+deb(\d+)_", path.name)
    assert found, path
    print(f"\n# {path.name}: {path.stat().st_size >> 20} MiB, for Debian {found[1]}")
    return Deb(path, found[1])


@pytest.fixture(scope="session")
def base(deb: Deb) -> Iterator[Path]:
    """An empty Debian of the package's release, with what it depends on and nothing else."""
    if os.geteuid() != 0:
        pytest.fail("these tests need root: they make Debian folders")
    folder = Path(tempfile.mkdtemp(prefix="vmtune-test-deb.", dir="/var/tmp"))
    try:
        release = os.environ.get("VMTUNE_TEST_SUITE", RELEASES[deb.debian])
        print(f"# an empty Debian of {release}", flush=True)
        script = CHECKOUT / "packaging" / "deb" / "root.sh"
        subprocess.run(["sh", script, release, folder / "base"], check=True)
        # What is thrown away need not be on the disk.
        (folder / "base/etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
        shared = folder / "shared"
        shared.mkdir()
        shutil.copy(deb.path, shared / "new.deb")
        Root(f"{folder}/base", folder / "needed", shared).run(
            f"{UPDATE}; apt-get satisfy -y -q --no-install-recommends " + shlex.quote(deb.depends),
            network=True,
        )
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def empty(base: Path) -> Root:
    """That Debian, without the package."""
    return Root(f"{base}/needed/upper:{base}/base", base / "empty", base / "shared")


@pytest.fixture(scope="session")
def installed(base: Path) -> str:
    """What dpkg says while it installs the package; it has no network."""
    lower = f"{base}/needed/upper:{base}/base"
    return Root(lower, base / "installed", base / "shared").run("dpkg -i /mnt/new.deb").stderr


@pytest.fixture
def root(base: Path, installed: str, request: pytest.FixtureRequest) -> Root:
    """That Debian with the package, as new for each test; new.deb is in /mnt."""
    assert "vmtune:" not in installed
    lower = f"{base}/installed/upper:{base}/needed/upper:{base}/base"
    return Root(lower, base / request.node.name, base / "shared")


@pytest.fixture(scope="session")
def system(base: Path) -> Iterator[Booted]:
    """That Debian with systemd and libvirt running, and without the package."""
    lower = f"{base}/needed/upper:{base}/base"
    Root(lower, base / "bootable", base / "shared").run(
        f"{UPDATE}; apt-get install -y -q --no-install-recommends "
        "systemd-sysv dbus libvirt-daemon-system libvirt-clients qemu-system-x86 openssl",
        network=True,
    )
    with booted(f"{base}/bootable/upper:{lower}", base / "booted", base / "shared") as made:
        yield made
