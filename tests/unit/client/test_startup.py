"""The command starts in a blink: what is heavy is not imported."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from tests.support.served.stub_service import StubService, page
from vmtune.client.cli import COMMANDS, root

HEAVY = (
    "alembic", "asyncio", "dbos", "fastapi", "libvirt", "numpy", "psycopg", "pydantic",
    "qemu", "rich", "sqlalchemy", "structlog", "uvicorn",
)  # fmt: skip
PROGRAM = f"""
import sys
from vmtune.client.cli import run
code = run(sys.argv[1:])
print("imported:", *(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
raise SystemExit(code)
"""


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("profile", "--help"), ("bench", "migration", "--help")],
)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    ran = start(*arguments)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[-1] == "imported:"


@pytest.mark.parametrize("arguments", [("tunables",), ("host", "list"), ("--json", "vm", "list")])
def test_asking_the_service_imports_nothing_heavy(
    service: StubService, arguments: tuple[str, ...]
) -> None:
    for path in ("/tunables", "/hosts", "/vms"):
        service.on("GET", path, page(problems=[]))
    ran = start("--socket", str(service.socket), *arguments)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[-1] == "imported:"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_line_of_help_is_the_commands_own(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name
    first = (command.help or "").split("\n\n")[0].replace("\n", " ")
    assert first.startswith(COMMANDS[name][1].removesuffix(".")), first


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_common_options(name: str) -> None:
    def check(command: click.Command, path: str) -> None:
        options = {option for p in command.params for option in p.opts}
        assert {"--json", "--quiet", "-q", "--socket", "--debug"} <= options, path
        assert command.help, path
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for below in command.list_commands(ctx):
                sub = command.get_command(ctx, below)
                assert sub is not None
                check(sub, f"{path} {below}")

    command = root.get_command(click.Context(root), name)
    assert command is not None
    check(command, name)
