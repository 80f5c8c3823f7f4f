"""The wheel of vmtune-client, installed in an environment that has nothing else, asks a service."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

CLIENT = Path(__file__).parents[2] / "packaging" / "client"
PROGRAM = """
import asyncio, sys
from vmtune_client import AsyncClient, Client, Missing, models
socket = sys.argv[1]
with Client(socket=socket) as vmtune:
    made = vmtune.create_profile({"name": "p", "values": {"multifd": True}})
    print(made["name"], vmtune.get_health()["status"])
    try:
        vmtune.get_profile("nowhere")
    except Missing as error:
        print(error.problems[0].code)
async def main():
    async with AsyncClient(socket=socket) as vmtune:
        async for item in vmtune.events(after="0"):
            if getattr(item, "id", ""):
                print(item.name, item.data["subject"])
                return
asyncio.run(main())
"""


def _needed(name: str) -> Iterator[str]:
    """A distribution and those that it needs here, without extras."""
    yield name
    for each in map(Requirement, importlib.metadata.requires(name) or ()):
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            yield from _needed(each.name)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and httpx, and no vmtune."""
    at = tmp_path_factory.mktemp("client")
    source = shutil.copytree(CLIENT, at / "source", symlinks=False)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable,
         "--out-dir", at, source],
        check=True,
    )  # fmt: skip
    (wheel,) = at.glob("vmtune_client-*.whl")
    subprocess.run([uv, "venv", "--quiet", at / "venv"], check=True)
    python = at / "venv" / "bin" / "python"
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel],
        check=True,
    )
    (site,) = (at / "venv").glob("lib/python3*/site-packages")
    for name in set(_needed("httpx")):
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)
    return python


def test_it_asks_a_service(python: Path, tmp_path: Path) -> None:
    vmtune = [sys.executable, "-m", "vmtune"]
    socket = tmp_path / "vmtune.sock"
    places = ["--state-dir", str(tmp_path), "--quiet"]
    subprocess.run([*vmtune, "db", "upgrade", *places], check=True)
    serving = subprocess.Popen(
        [*vmtune, "serve", "--state-dir", str(tmp_path), "--socket", str(socket),
         "--listen-port", "0"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        clean = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
        ran = subprocess.run(  # it repeats what it asks until the service has started
            [python, "-I", "-c", PROGRAM, socket], env=clean, cwd=tmp_path,
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
    finally:
        serving.terminate()
        serving.wait(60)
    assert ran.stdout.splitlines() == ["p ok", "not_found", "profile p"], ran.stderr


def test_it_has_types_and_no_vmtune(python: Path) -> None:
    program = (
        "import importlib.util, pathlib, vmtune_client as v; "
        "print(importlib.util.find_spec('vmtune'), "
        "(pathlib.Path(v.__file__).parent / 'py.typed').exists())"
    )
    ran = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "None True\n"
