"""The patch of QEMU, and the script that builds it as far as it goes without building."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from setuptools import find_namespace_packages

from tests.support.qemus.patched_build import RELEASE, place
from tests.support.simulated.patched_qemu import COUNTERS, POLICIES, RANGES, SENDS, SETTABLE
from vmtune.packs import shipped

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[3] / "vmtune/packs/qemu-10"
PATCH = (FOLDER / "x-vmtune.patch").read_text()
SCRIPT = (FOLDER / "build.sh").read_text()
VERSION = "1:10.0.13+ds-0+deb13u1"


def test_the_patch_holds_our_lines_only() -> None:
    header, _, body = PATCH.partition("\n--- ")
    assert "SPDX-License-Identifier: GPL-2.0-or-later" in header
    assert VERSION in header
    kinds = {line[:1] for line in body.splitlines()[1:] if not line.startswith(("--- ", "+++ "))}
    assert kinds == {"+", "@"}, "context lines or lines that are taken away"
    added = {int(count or 1) for count in re.findall(r"^@@ -\d+,(\d+)? ", PATCH, re.MULTILINE)}
    assert added == {0}


def test_each_new_file_says_its_licence() -> None:
    new = re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)\n@@.*\n((?:\+.*\n)+)", PATCH, re.MULTILINE)
    assert {name for name, _ in new} == {
        "include/qemu/vmtune.h", "io/vmtune-sends.c.inc", "system/vmtune.c",
        "util/vmtune-pool.c.inc",
    }  # fmt: skip
    for name, text in new:
        assert "SPDX-License-Identifier: GPL-2.0-or-later" in text, name
    assert "Version 2, June 1991" in (FOLDER / "COPYING").read_text()


def test_no_package_has_it() -> None:
    root = FOLDER.parents[2]
    setuptools = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = find_namespace_packages(str(root), **setuptools["packages"]["find"])
    assert "vmtune.packs" in packed
    assert not [name for name in packed if name.startswith("vmtune.packs.")]


def test_names_ranges_and_defaults_are_the_packs() -> None:
    rows = re.findall(
        r'^\+    \[\w+\] = \{ "([\w-]+)", (\d+), (\d+), (\d+), (\d+),', PATCH, re.MULTILINE
    )
    ranges = {name: (int(least), int(most)) for name, least, most, _, _ in rows}
    stock = {name: int(value) for name, _, _, value, _ in rows}
    begins = {name: int(value) for name, _, _, _, value in rows}
    policies = re.search(r"policies\[POLICIES\] = \{ (.*) \};", PATCH)
    counters = re.findall(r'^\+    \{ "([\w-]+)", vmtune_\w+ \},', PATCH, re.MULTILINE)
    assert policies
    assert re.findall(r'"(\w+)"', policies[1]) == list(POLICIES)
    assert stock == begins == {k: v for k, v in SETTABLE.items() if k != "reaper-policy"}
    assert ranges == RANGES
    assert counters == list(COUNTERS)
    sends = re.findall(r'^\+        \{ "([\w-]+)", sent\.', PATCH, re.MULTILINE)
    assert sends == list(SENDS)
    pack = tomllib.loads(shipped()["qemu-patched"].read_text())["tunable"]
    assert {r["qom"]["property"]: r["default"] for r in pack if "default" in r} == SETTABLE
    in_pack = {
        r["qom"]["property"]: (r["minimum"], r["maximum"])
        for r in pack
        if "default" in r and r["type"] == "integer"
    }
    assert in_pack == ranges


def test_the_script_the_tests_and_the_checksums_are_of_one_version() -> None:
    assert f"version='{VERSION}'" in SCRIPT
    assert f"release={RELEASE}\n" in SCRIPT
    names = [line.split()[1] for line in (FOLDER / "sources.sha256").read_text().splitlines()]
    debian = VERSION.partition(":")[2]
    upstream = debian.rpartition("-")[0]
    assert names == [
        f"qemu_{debian}.dsc", f"qemu_{upstream}.orig.tar.xz", f"qemu_{debian}.debian.tar.xz",
    ]  # fmt: skip


# --- The script, where apt is a stub ---

STUBS = {
    # All packages are there; the mirror is one, and has what the test says.
    "dpkg-query": "echo installed",
    "apt-get": """
case " $* " in
    *" indextargets "*) printf "http://mirror.test/debian %s\\n" bookworm trixie ;;
    *" source "*) for f in $SOURCES; do echo wrong >"$f"; done ;;
esac
echo "apt-get $*" >>"$CALLS"
""",
    "apt-cache": """
echo "apt-cache $*" >>"$CALLS"
printf "Package: qemu\\nVersion: %s\\n" "$OFFERED"
""",
    "dpkg-source": "echo unpacking >&2; exit 1",
}


class Machine:
    """A folder with stubs of apt, and a home of its own."""

    def __init__(self, at: Path) -> None:
        self.folder = at / "built"
        self.calls = at / "calls"
        self.calls.touch()
        self._bin = at / "bin"
        self._bin.mkdir()
        for name, text in STUBS.items():
            self.stub(name, text)
        self.scripts = FOLDER
        self.variables = {
            "PATH": f"{self._bin}:{os.environ['PATH']}", "HOME": str(at),
            "PATCHED_QEMU": str(self.folder), "CALLS": str(self.calls),
            "OFFERED": VERSION, "SOURCES": "",
        }  # fmt: skip

    def stub(self, name: str, text: str) -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def build(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(self.scripts / "build.sh"), *arguments], capture_output=True, text=True,
            timeout=30, check=False, env={**self.variables, **variables},
        )  # fmt: skip


def _here() -> str:
    release = Path("/etc/os-release")
    text = release.read_text() if release.exists() else ""
    if os.uname().machine != "x86_64" or not re.search(
        "^VERSION_CODENAME=(bookworm|trixie)$", text, re.M
    ):
        return "the script is for Debian 12 and 13 on x86_64"
    return "" if shutil.which("flock") else "flock is not installed"


NOT_HERE = _here()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if NOT_HERE:
        pytest.skip(NOT_HERE)
    return Machine(tmp_path)


def test_an_unknown_version_is_refused_with_what_there_is(machine: Machine) -> None:
    done = machine.build(OFFERED="1:10.0.14+ds-0+deb13u1")
    assert done.returncode == 1
    assert "has QEMU 1:10.0.14+ds-0+deb13u1 in trixie" in done.stderr
    assert f"the patch is for {VERSION} only" in done.stderr
    assert "snapshot.debian.org" in done.stderr
    assert " source " not in machine.calls.read_text()


def test_only_lists_of_its_own_are_used(machine: Machine) -> None:
    machine.build(OFFERED="1:10.0.14+ds-0+deb13u1")
    own = machine.folder / f"qemu-{RELEASE}/apt"
    (line,) = (own / "sources.list").read_text().splitlines()
    assert line.startswith("deb-src ")
    assert line.endswith("http://mirror.test/debian trixie main")
    for call in machine.calls.read_text().splitlines():
        assert "indextargets" in call or f"-c {own}/apt.conf" in call
    kept = re.findall(r'^Dir::\S+ "(\S+)";', (own / "apt.conf").read_text(), re.MULTILINE)
    assert all(Path(path).is_relative_to(own) for path in kept if path != "/dev/null")


def test_other_sources_than_those_of_the_patch_are_refused(machine: Machine) -> None:
    names = [line.split()[1] for line in (FOLDER / "sources.sha256").read_text().splitlines()]
    done = machine.build(SOURCES=" ".join(names))
    assert done.returncode == 1
    assert "are not those that the patch is for" in done.stderr
    assert not (machine.folder / f"qemu-{RELEASE}/source").exists()


def test_one_build_at_a_time(machine: Machine) -> None:
    machine.folder.mkdir()
    with (machine.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = machine.build()
    assert done.returncode == 1
    assert "another build is at work" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: it cannot be another user")
def test_who_is_not_root_is_told_what_to_install(machine: Machine) -> None:
    machine.stub("dpkg-query", '[ "$3" = ninja-build ] || echo installed')
    machine.stub("id", "echo 1000")
    done = machine.build()
    assert done.returncode == 1
    assert done.stderr.strip().endswith("install by hand: ninja-build")


@pytest.mark.parametrize("wrong", ["here", "/tmp/with space", "/tmp/$(x)"])
def test_a_folder_that_cannot_be_is_refused(machine: Machine, wrong: str) -> None:
    done = machine.build(PATCHED_QEMU=wrong)
    assert done.returncode == 1
    assert "PATCHED_QEMU" in done.stderr
    assert machine.build("--help").returncode == 1


def test_tests_look_where_the_script_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATCHED_QEMU", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert place() == Path("/caches/vmtune/qemu-patched")
    assert "${XDG_CACHE_HOME:-$HOME/.cache}/vmtune/qemu-patched" in SCRIPT
    monkeypatch.setenv("PATCHED_QEMU", "/opt/q")
    assert place() == Path("/opt/q")


# --- The script to its end, where sources, ninja and what it makes are stubs ---

QEMU = f"""#!/bin/sh
case "$*" in
    -version) echo "QEMU emulator version {RELEASE}" ;;
    "-object help") echo "  x-vmtune" ;;
esac
"""
BUILDING = {
    # Enough lines in each file for the patch's, which has no context to find them by.
    "dpkg-source": """
mkdir "$4"
cd "$4"
mkdir -p accel/kvm io migration qapi system util include/qemu
for file in accel/kvm/kvm-all.c io/channel-socket.c migration/migration.c migration/multifd.c \\
        qapi/qom.json system/meson.build util/qemu-coroutine.c; do
    yes "" | head -n 4000 >$file
    touch -d 2026-01-01 $file
done
echo "one of Debian's patches was applied" >meson.build
printf '#!/bin/sh\\necho "configure $*" >>"$CALLS"; touch build.ninja\\n' >configure
chmod 755 configure
""",
    "ninja": 'echo "ninja $*" >>"$CALLS"; printf "%s" "$QEMU" >"$2/$3"; chmod 755 "$2/$3"; $FAIL',
}


@pytest.fixture
def builder(machine: Machine, tmp_path: Path) -> Machine:
    """With a copy of the script's folder, whose checksums are those of the stub's sources."""
    machine.scripts = tmp_path / "qemu-10"
    shutil.copytree(FOLDER, machine.scripts)
    names = [line.split()[1] for line in (FOLDER / "sources.sha256").read_text().splitlines()]
    wrong = hashlib.sha256(b"wrong\n").hexdigest()
    sums = "".join(f"{wrong}  {name}\n" for name in names)
    (machine.scripts / "sources.sha256").write_text(sums)
    meson = machine.folder / f"qemu-{RELEASE}/tools/bin/meson"
    meson.parent.mkdir(parents=True)
    meson.touch(0o755)
    for name, text in BUILDING.items():
        machine.stub(name, text)
    machine.variables |= {"SOURCES": " ".join(names), "QEMU": QEMU, "FAIL": "true"}
    return machine


def test_it_builds_says_where_and_does_nothing_twice(builder: Machine) -> None:
    done = builder.build()
    program = builder.folder / "bin/qemu-system-x86_64"
    assert done.returncode == 0, done.stderr
    assert f"<emulator>{program}</emulator>" in done.stdout
    assert os.access(program, os.X_OK)
    calls = builder.calls.read_text()
    assert calls.count("apt-get -c") == 2  # update, source
    assert calls.count("configure ") == calls.count("ninja ") == 1
    again = builder.build()
    assert again.returncode == 0
    assert "nothing to do: it is built" in again.stdout
    assert builder.calls.read_text() == calls


def test_an_interrupted_build_goes_on_where_it_was(builder: Machine) -> None:
    failed = builder.build(FAIL="false")
    assert failed.returncode == 1
    assert "could not build" in failed.stderr
    assert not (builder.folder / "built").exists()
    before = builder.calls.read_text()
    assert builder.build().returncode == 0
    more = builder.calls.read_text().removeprefix(before).splitlines()
    assert [call.split()[0] for call in more] == ["ninja"]


def test_after_another_patch_only_what_changed_is_newer(builder: Machine) -> None:
    assert builder.build().returncode == 0
    source = builder.folder / f"qemu-{RELEASE}/source"
    names = [*re.findall(r"^\+\+\+ b/(\S+)", PATCH, re.MULTILINE), "meson.build"]
    before = {name: (source / name).stat().st_mtime_ns for name in names}
    changed = PATCH.replace("FREED_AT_ONCE 256", "FREED_AT_ONCE 128")
    assert changed != PATCH
    (builder.scripts / "x-vmtune.patch").write_text(changed)
    done = builder.build()
    assert done.returncode == 0, done.stderr
    assert "nothing to do" not in done.stdout
    newer = {name for name in names if (source / name).stat().st_mtime_ns > before[name]}
    assert newer == {"util/vmtune-pool.c.inc"}
    assert "FREED_AT_ONCE 128" in (source / "util/vmtune-pool.c.inc").read_text()


def test_the_same_build_without_the_patch(builder: Machine) -> None:
    assert builder.build().returncode == 0
    before = builder.calls.read_text()
    own = builder.folder / "unpatched"
    meson = own / f"qemu-{RELEASE}/tools/bin/meson"
    meson.parent.mkdir(parents=True)
    meson.touch(0o755)
    plain = QEMU.replace("x-vmtune", "other")
    done = builder.build(UNPATCHED="1", QEMU=plain)
    assert done.returncode == 0, done.stderr
    assert str(own / "bin/qemu-system-x86_64") in done.stdout
    assert "<emulator>" not in done.stdout
    # The sources of the patched one are used again, and it stays as it is.
    calls = builder.calls.read_text().removeprefix(before)
    assert "apt-get" not in calls
    assert f"--prefix={own} " in calls
    source = own / f"qemu-{RELEASE}/source"
    assert not (source / "system/vmtune.c").exists()
    assert "nothing to do" in builder.build().stdout
    assert "nothing to do" in builder.build(UNPATCHED="1", QEMU=plain).stdout


def test_an_unpatched_qemu_with_the_object_is_refused(builder: Machine) -> None:
    meson = builder.folder / f"unpatched/qemu-{RELEASE}/tools/bin/meson"
    meson.parent.mkdir(parents=True)
    meson.touch(0o755)
    done = builder.build(UNPATCHED="1")
    assert done.returncode == 1
    assert "has x-vmtune, and should not" in done.stderr


def test_a_qemu_without_the_object_is_not_called_built(builder: Machine) -> None:
    done = builder.build(QEMU=QEMU.replace("x-vmtune", "other"))
    assert done.returncode == 1
    assert "has no x-vmtune" in done.stderr
    assert not (builder.folder / "built").exists()
