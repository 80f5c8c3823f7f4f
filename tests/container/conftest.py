"""The container image, and containers of it."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.hosts.live import why_no_lab

CHECKOUT = Path(__file__).parents[2]
CONTAINER = CHECKOUT / "packaging" / "container"
IMAGE, POSTGRES_IMAGE = "localhost/vmtune-test", "localhost/vmtune-postgres-test"
PODMAN_COMPOSE = "1.6.0"
CACHE = Path(os.environ.get("VMTUNE_CACHE", CHECKOUT / ".cache"))
# No more than a root without CAP_SYS_RESOURCE can set.
LIMITS = ("nofile=8192:8192", "nproc=1024:1024")


def why_no_containers() -> str:
    """Why no container can be run here; empty when one can."""
    missing = [each for each in ("buildah", "podman") if shutil.which(each) is None]
    if missing:
        return f"{missing[0]} is not installed: apt-get install {missing[0]}"
    return why_no_lab()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say why none of these tests can be run, where that is so."""
    why = why_no_containers()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skipif(bool(why), reason=why or "never"))
            item.add_marker(pytest.mark.timeout(900, func_only=True))


@pytest.fixture(scope="session", autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Podman's settings for this machine: where cgroups are of both versions only runc runs
    containers."""
    is_hybrid = Path("/sys/fs/cgroup/unified").exists() and shutil.which("runc")
    runtime = '[engine]\nruntime = "runc"\n' if is_hybrid else ""
    limits = ", ".join(f'"{each}"' for each in LIMITS)
    file = tmp_path_factory.mktemp("podman") / "containers.conf"
    file.write_text(f"{runtime}[containers]\ndefault_ulimits = [{limits}]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(file))
        yield


def built(*arguments: str) -> None:
    """Have ``build.sh`` make an image."""
    # Building runs no service: it needs neither a network nor limits of its own.
    options = {"BUILDAH_OPTIONS": "--isolation chroot --network host"}
    user = pwd.getpwnam("libvirt-qemu")
    options |= {"VMTUNE_UID": str(user.pw_uid), "VMTUNE_GID": str(user.pw_gid)}
    environment = {**os.environ, **options}
    subprocess.run(["sh", CONTAINER / "build.sh", *arguments], env=environment, check=True)


@pytest.fixture(scope="session")
def image() -> str:
    """The image of the package in ``dist``."""
    built(IMAGE)
    return IMAGE


@pytest.fixture(scope="session")
def postgres_image() -> str:
    """The image of Debian's PostgreSQL."""
    built("--postgres", POSTGRES_IMAGE)
    return POSTGRES_IMAGE


@pytest.fixture(scope="session")
def podman_compose() -> Path:
    """The program, in an environment of its own: that of Debian 12 passes no groups on."""
    folder = CACHE / "podman-compose"
    if not (folder / ".complete").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", folder / "env"], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", folder / "env/bin/python"]
        subprocess.run([*install, f"podman-compose=={PODMAN_COMPOSE}"], check=True)
        (folder / ".complete").touch()
    return folder / "env/bin/podman-compose"


@dataclass(frozen=True)
class Container:
    """One that runs."""

    name: str

    def run(self, *command: str) -> str:
        """What *command* prints in it.

        :raise AssertionError: it fails.
        """
        ran = self._podman("exec", self.name, *command)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def logged(self) -> str:
        """What it has logged."""
        ran = self._podman("logs", self.name)
        return ran.stdout + ran.stderr

    def until_healthy(self) -> None:
        """Wait until its own health check is content."""
        deadline = time.monotonic() + 180
        while self._podman("healthcheck", "run", self.name).returncode != 0:
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.2)

    def _podman(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["podman", *arguments], capture_output=True, text=True, timeout=300, check=False
        )


@contextmanager
def container(image: str, *options: str) -> Iterator[Container]:
    """A container of *image*, healthy, and gone afterwards."""
    name = f"vmtune-{secrets.token_hex(4)}"
    begin = ["podman", "run", "--detach", "--name", name, "--network", "host"]
    try:
        subprocess.run([*begin, *options, image], check=True, timeout=300, capture_output=True)
        made = Container(name)
        made.until_healthy()
        yield made
    finally:
        subprocess.run(
            ["podman", "rm", "--force", "--volumes", "--time", "20", name],
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
