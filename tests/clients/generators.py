"""Stock generators of clients, each in a folder of its own below ``.cache/clients``: they are no
part of vmtune's environment. PyPI and the Go module proxy must be reachable the first time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENAPI = ROOT / "api" / "openapi.json"
OPENAPI_3_0 = ROOT / "api" / "openapi-3.0.json"
PROGRAMS = Path(__file__).with_name("programs")
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
GO_GENERATOR = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.0"
GO_RUNTIME = "github.com/oapi-codegen/runtime@v1.1.2"
_HOME = ROOT / ".cache" / "clients"
_WITHIN_S = 1200


def run(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Run a program in *folder*; what it printed. The test fails where it fails."""
    environment = {**os.environ, **(more or {})}
    done = subprocess.run(
        list(command), cwd=folder, env=environment, capture_output=True, text=True,
        timeout=_WITHIN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def python_client(folder: Path) -> tuple[Path, str]:
    """The client of openapi-python-client, as the package ``generated`` in *folder*.

    :return: a Python that has what it needs, and what the generator said.
    """
    python = _HOME / "python" / "bin" / "python"
    generator = python.with_name("openapi-python-client")
    if not generator.exists():
        uv = Path(sys.executable).with_name("uv")
        run([uv, "venv", "--quiet", "--clear", _HOME / "python"], ROOT)
        run([uv, "pip", "install", "--quiet", "--python", python, PYTHON_GENERATOR], ROOT)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # ruff formats what it writes
    output = folder / "generated"
    said = run(
        [generator, "generate", "--path", OPENAPI, "--meta", "none", "--output-path", output],
        folder,
        {"PATH": path},
    )
    return python, said


def why_no_go() -> str:
    """Why there is no Go client; empty where one can be made."""
    return "" if shutil.which("go") else "Go is not installed (1.22 or newer)"


def go_client(folder: Path) -> Path:
    """The program of ``programs/migrate.go`` with the client of oapi-codegen, built."""
    home = _HOME / "go"
    more = {
        "GOPATH": str(home),
        "GOBIN": str(home / "bin"),
        "GOFLAGS": "-modcacherw -buildvcs=false",
    }
    generator = home / "bin" / "oapi-codegen"
    if not generator.exists():
        run(["go", "install", GO_GENERATOR], ROOT, more)
    (folder / "vmtune").mkdir()
    run(
        [generator, "-generate", "types,client", "-package", "vmtune",
         "-o", folder / "vmtune" / "vmtune.go", OPENAPI_3_0], folder,
    )  # fmt: skip
    shutil.copy(PROGRAMS / "migrate.go", folder / "main.go")
    run(["go", "mod", "init", "example.org/migrate"], folder, more)
    run(["go", "get", GO_RUNTIME], folder, more)
    run(["go", "build", "-o", "migrate", "."], folder, more)
    return folder / "migrate"


def typescript_client(folder: Path) -> list[str | Path]:
    """The program of ``programs/migrate.ts`` with the types of openapi-typescript, checked.

    :return: the command that runs it.
    """
    binaries = ROOT / "web" / "node_modules" / ".bin"
    node = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (folder / "node_modules").symlink_to(ROOT / "web" / "node_modules")
    run(
        [binaries / "openapi-typescript", OPENAPI, "--default-non-nullable=false", "-o",
         folder / "schema.d.ts"], folder, node,
    )  # fmt: skip
    shutil.copy(PROGRAMS / "migrate.ts", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    strict = [
        "--strict",
        "--noEmit",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--skipLibCheck",
    ]
    run([binaries / "tsc", *strict, "--types", "node", "migrate.ts"], folder, node)
    return [Path(sys.executable).with_name("node"), "migrate.ts"]
