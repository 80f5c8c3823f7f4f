"""The wheel holds what a machine without the checkout needs, and runs from nothing else."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked."""
    at = tmp_path_factory.mktemp("wheel")
    source = at / "source"
    subprocess.run(["git", "clone", "--quiet", CHECKOUT, source], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", at, source],
        check=True,
    )  # fmt: skip
    (wheel,) = at.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(at / "site")
    return at / "site"


@pytest.mark.parametrize(
    "needed",
    [
        "vmtune/py.typed",
        "vmtune/api/openapi.json",
        "vmtune/api/routes/migrations.py",
        "vmtune/migrations/env.py",
        "vmtune/lab/bootstrap.sh",
        "vmtune/lab/guest/Makefile",
    ],
)
def test_it_ships(unpacked: Path, needed: str) -> None:
    assert (unpacked / needed).is_file()


def test_it_ships_every_schema_revision_and_every_source_of_the_guest(unpacked: Path) -> None:
    for pattern in ("migrations/versions/*.py", "vmtune/lab/guest/[!.]*.*"):
        for file in CHECKOUT.glob(pattern):
            inside = file.relative_to(CHECKOUT)
            inside = inside if inside.parts[0] == "vmtune" else Path("vmtune", inside)
            assert (unpacked / inside).is_file(), inside


def test_it_brings_no_package_but_vmtune(unpacked: Path) -> None:
    tops = {p.name for p in unpacked.iterdir() if not p.name.endswith(".dist-info")}
    assert tops == {"vmtune"}


def test_a_database_is_made_from_the_wheel_alone(unpacked: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/vmtune.db"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "vmtune", "db", "upgrade", "--database-url", url],
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "vmtune.db").exists()
