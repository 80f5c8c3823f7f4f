"""Clients that stock generators make of the OpenAPI document build, and migrate a VM in the lab."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import vmtune_client

from tests.clients.generators import (
    PROGRAMS,
    go_client,
    python_client,
    run,
    typescript_client,
    why_no_go,
)
from tests.support.hosts.live import Live, live, why_no_lab

NO_LAB = why_no_lab()
pytestmark = [
    pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never"),
    pytest.mark.timeout(2400),
]


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with live(tmp_path_factory.mktemp("live"), number=97, port=port) as made:
        yield made


def migrates(it: Live, command: Sequence[str | Path], folder: Path, name: str) -> None:
    """Whether the program migrates a VM to host b, once, and sees that nowhere is refused."""
    body = {"name": name, "scopes": ["read", "migrate"]}
    token = it.client.post("/tokens", body)["token"]
    with it.vm() as vm:
        said = run([*command, it.service.origin, token, vm.uuid, "b"], folder).split()
        assert said == ["not_found", said[1], said[1], "completed"], said
        (record,) = [m for m in it.client.items("/migrations") if m["vm"] == vm.uuid]
        assert (record["id"], record["state"]) == (said[1], "completed")
        assert it.states(vm) == {"b": "running"}


def test_openapi_python_client(it: Live, tmp_path: Path) -> None:
    python, said = python_client(tmp_path)
    unable = [line for line in said.splitlines() if re.match("Unable|ERROR|WARNING", line)]
    # The body of libvirt's hook is XML; nothing else is left out.
    assert unable == [
        "WARNING parsing POST /api/v1/hooks/qemu within hooks. Endpoint will not be generated."
    ], said
    shutil.copy(PROGRAMS / "migrate.py", tmp_path)
    migrates(it, [python, "migrate.py"], tmp_path, "python")


def test_openapi_typescript(it: Live, tmp_path: Path) -> None:
    migrates(it, typescript_client(tmp_path), tmp_path, "typescript")


@pytest.mark.skipif(bool(why_no_go()), reason=why_no_go() or "never")
def test_oapi_codegen_of_go(it: Live, tmp_path: Path) -> None:
    migrates(it, [go_client(tmp_path)], tmp_path, "go")


def test_vmtune_client(it: Live) -> None:
    """vmtune's own package, by its socket."""
    with it.vm() as vm, vmtune_client.Client(socket=str(it.client.socket_path)) as vmtune:
        started = vmtune.start_migration({"vm": vm.uuid, "destination": "b"})
        assert vmtune.wait_migration(started["id"], within_s=120)["state"] == "completed"
        assert it.states(vm) == {"b": "running"}
