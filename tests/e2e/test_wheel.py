"""The wheel holds what a machine without the checkout needs, and runs from nothing else."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
WEB_UI = CHECKOUT / "vmtune" / "webui"
READY_WITHIN_S = 60.0
MAIN = "import sys\nfrom vmtune.client.cli import main\nsys.exit(main())\n"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` does and unpacked."""
    assert (WEB_UI / "index.html").is_file(), "the web UI is not built: make web"
    at = tmp_path_factory.mktemp("wheel")
    source = at / "source"
    subprocess.run(["git", "clone", "--quiet", CHECKOUT, source], check=True)
    shutil.copytree(WEB_UI, source / "vmtune" / "webui")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", at, source],
        check=True,
    )  # fmt: skip
    (wheel,) = at.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(at / "site")
    return at / "site"


@pytest.fixture(scope="module")
def command(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`vmtune` of a virtual environment that has the wheel's files and what it depends on.

    The dependencies are those of the environment that runs the tests; tests/packages installs
    them anew.
    """
    venv = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    shutil.copytree(unpacked, site, dirs_exist_ok=True)
    (here,) = Path(sys.prefix).glob("lib/python3*/site-packages")
    (site / "dependencies.pth").write_text(f"{here}\n")
    made = venv / "bin" / "vmtune"
    made.write_text(f"#!{venv}/bin/python -I\n{MAIN}")
    made.chmod(0o755)
    return made


@pytest.fixture(scope="module")
def served(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The unix socket of a service that runs from the wheel."""
    at = tmp_path_factory.mktemp("served")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("VMTUNE_", "PYTHON"))}
    environ |= {"VMTUNE_STATE_DIR": str(at), "VMTUNE_RUNTIME_DIR": str(at),
                "VMTUNE_LISTEN_PORT": "0", "VMTUNE_CONFIG": "/dev/null"}  # fmt: skip
    subprocess.run([command, "db", "upgrade", "--quiet"], env=environ, cwd=at, check=True)
    with (at / "log").open("wb") as log:
        process = subprocess.Popen([command, "serve"], env=environ, cwd=at, stderr=log, stdout=log)
    try:
        until = time.monotonic() + READY_WITHIN_S
        while not (at / "vmtune.sock").exists():
            assert process.poll() is None, (at / "log").read_text()
            assert time.monotonic() < until, (at / "log").read_text()
            time.sleep(0.05)
        yield at / "vmtune.sock"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (at / "log").read_text()


def get(address: Path, path: str) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(60)
    connection.sock.connect(str(address))
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.headers["content-type"] or "", response.read()
    connection.close()
    return answer


@pytest.mark.parametrize(
    "needed",
    [
        "vmtune/py.typed",
        "vmtune/api/openapi.json",
        "vmtune/api/routes/migrations.py",
        "vmtune/migrations/env.py",
        "vmtune/lab/bootstrap.sh",
        "vmtune/lab/guest/Makefile",
        "vmtune/hook/qemu.sh",
        "vmtune/webui/index.html",
    ],
)
def test_it_ships(unpacked: Path, needed: str) -> None:
    assert (unpacked / needed).is_file()


FOR_CHECKOUTS = Path("vmtune/packs/qemu-10")
"""Under another licence, and of use only to who builds a QEMU from a checkout."""
FOR_TESTS = Path("vmtune/testing")


def test_it_ships_every_file_of_the_package(unpacked: Path) -> None:
    kept = ["git", "ls-tree", "-r", "--name-only", "HEAD", "vmtune", "api", "migrations"]
    listed = subprocess.run(kept, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    files = [Path(line) for line in listed.stdout.splitlines()]
    built = [path for path in WEB_UI.rglob("*") if path.is_file()]
    files += [path.relative_to(CHECKOUT) for path in built]
    for file in files:
        if file.name.startswith(".") or (CHECKOUT / file).is_symlink():
            continue
        if file.is_relative_to(FOR_CHECKOUTS) or file.is_relative_to(FOR_TESTS):
            continue
        inside = file if file.parts[0] == "vmtune" else Path("vmtune", file)
        assert (unpacked / inside).is_file(), inside


def test_it_ships_no_fakes_and_simulations(unpacked: Path) -> None:
    assert (CHECKOUT / FOR_TESTS).is_dir()
    assert not (unpacked / FOR_TESTS).exists()


def test_it_brings_no_package_but_vmtune(unpacked: Path) -> None:
    tops = {p.name for p in unpacked.iterdir() if not p.name.endswith(".dist-info")}
    assert tops == {"vmtune"}


def test_the_command_runs_the_wheels_files_alone(command: Path) -> None:
    where = "import vmtune, vmtune.api, vmtune.migrations as m; print(vmtune.__file__, m.__file__)"
    ran = subprocess.run(
        [command.with_name("python"), "-I", "-c", where], capture_output=True, text=True, check=True
    )
    assert all(Path(path).is_relative_to(command.parents[1]) for path in ran.stdout.split())


def test_it_serves_the_api_from_a_database_that_it_made(served: Path) -> None:
    assert (served.parent / "vmtune.db").exists()
    assert get(served, "/api/v1/health")[0] == 200
    assert get(served, "/api/v1/profiles")[0] == 200


def test_it_serves_the_web_ui(served: Path) -> None:
    status, kind, page = get(served, "/")
    assert status == 200
    assert kind.startswith("text/html")
    assets = re.findall(r'(?:src|href)="(/[^"]+)"', page.decode())
    assert any(asset.endswith(".js") for asset in assets), page.decode()
    for asset in assets:
        status, _, body = get(served, asset)
        assert status == 200, asset
        assert body


def test_it_knows_the_published_tables(command: Path, served: Path) -> None:
    ran = subprocess.run(
        [command, "--socket", served, "--json", "reference", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"id"' in ran.stdout
