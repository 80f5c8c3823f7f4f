"""The service in a container: with libvirt's sockets of two hosts, and with PostgreSQL."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.container.conftest import CONTAINER, Container, container
from tests.support.hosts.live import Live, live
from tests.support.served.browser import free_port
from tests.support.stores.postgres import new_database, running_postgres

LIBVIRT_GID = 64999
"""Of no group of the image: what the host's group libvirt has is the host's."""


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A lab whose libvirt's sockets are open to a group, as Debian's are."""
    with live(tmp_path_factory.mktemp("container"), number=95) as made:
        for name in "ab":
            socket = sockets(made, name) / "libvirt-sock"
            os.chown(socket, 0, LIBVIRT_GID)
            socket.chmod(0o770)
        yield made


def sockets(it: Live, name: str) -> Path:
    """The folder of a host's sockets."""
    return it.settings.folder / name / "run" / "libvirt"


def options(it: Live, *more: str) -> tuple[str, ...]:
    mounts = [each for n in "ab" for each in ("--volume", f"{sockets(it, n)}:/run/libvirt-{n}")]
    port = f"VMTUNE_LISTEN_PORT={free_port()}"
    return (*mounts, "--group-add", str(LIBVIRT_GID), "--env", port, *more)


def add_hosts(it: Live, inside: Container) -> None:
    for name, host in zip("ab", it.status.hosts, strict=True):
        uri = f"qemu+unix:///system?socket=/run/libvirt-{name}/libvirt-sock"
        inside.run("vmtune", "host", "add", name, uri, "--peer-uri", host.peer_uri)


def test_it_migrates_by_the_hosts_sockets(it: Live, image: str) -> None:
    with it.vm() as vm, container(image, *options(it)) as inside:
        assert "uid=0" not in inside.run("id")
        add_hosts(it, inside)
        inside.run("vmtune", "migrate", vm.name, "b")
        found = json.loads(inside.run("vmtune", "migration", "list", "-o", "json"))
        items = found["items"] if isinstance(found, dict) else found
        assert [each["state"] for each in items] == ["completed"]
        assert it.states(vm) == {"b": "running"}


def test_what_it_stores_outlives_it(it: Live, image: str, request: pytest.FixtureRequest) -> None:
    volume = f"vmtune-test-{os.getpid()}"
    request.addfinalizer(
        lambda: subprocess.run(["podman", "volume", "rm", "--force", volume], check=False)
    )
    kept = options(it, "--volume", f"{volume}:/var/lib/vmtune")
    with container(image, *kept) as inside:
        inside.run("vmtune", "profile", "create", "fast", "multifd=on")
    with container(image, *kept) as inside:
        assert "fast" in inside.run("vmtune", "profile", "list")


def test_two_share_postgresql(it: Live, image: str) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(new_database(stack.enter_context(running_postgres())))
        where, _, folder = url.partition("?host=")
        place = Path(folder.replace("%2F", "/"))
        place.chmod(0o755)  # the container's user is another than the server's
        (place / ".s.PGSQL.5432").chmod(0o777)

        def service(name: str) -> Container:
            # On the host's network both have the host's name, and each is process 1.
            shared = ("--volume", f"{place}:/postgres", "--env", f"VMTUNE_SERVICE_NAME={name}")
            database = ("--env", f"VMTUNE_DATABASE_URL={where}?host=/postgres")
            return stack.enter_context(container(image, *options(it, *shared, *database)))

        one, other = service("one"), service("other")
        one.run("vmtune", "profile", "create", "fast", "multifd=on")
        assert "fast" in other.run("vmtune", "profile", "list")


def listening_at(port: int) -> list[str]:
    """The addresses of this machine, as the kernel writes them, at which *port* is served."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and
            int(row[1].partition(":")[2], 16) == port]  # fmt: skip


def test_compose_starts_it_with_postgresql_for_this_machine_alone(
    it: Live, image: str, postgres_image: str, podman_compose: Path
) -> None:
    project, port = f"vmtune-{secrets.token_hex(4)}", free_port()
    environment = {
        **os.environ,
        "VMTUNE_IMAGE": image,
        "POSTGRES_IMAGE": postgres_image,
        "POSTGRES_PASSWORD": secrets.token_hex(16),
        "LIBVIRT_GID": str(LIBVIRT_GID),
        "LIBVIRT_SOCKETS": str(sockets(it, "a")),
        "VMTUNE_LISTEN_PORT": str(port),
    }

    def compose(*words: str) -> None:
        command = [podman_compose, "-p", project, "-f", CONTAINER / "compose.yml", *words]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    service = Container(f"{project}_vmtune_1")
    try:
        compose("up", "-d")
        service.until_healthy()
        service.run("vmtune", "profile", "create", "fast", "multifd=on")
        service.run(
            "vmtune", "host", "add", "a", "qemu+unix:///system?socket=/run/libvirt/libvirt-sock"
        )
        assert listening_at(port) == ["0100007F"]
        inside = Container(f"{project}_db_1").run("cat", "/proc/net/dev").splitlines()[2:]
        assert [line.split(":")[0].strip() for line in inside] == ["lo"]
        with pytest.raises(AssertionError, match="password"):
            Container(f"{project}_db_1").run("psql", "-w", "-U", "vmtune", "-c", "select 1")
        compose("down")
        compose("up", "-d")
        service.until_healthy()
        assert "fast" in service.run("vmtune", "profile", "list")
    finally:
        compose("down", "-v")
