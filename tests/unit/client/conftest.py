"""A stub service and the command, run in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.served.api import Api
from tests.support.served.served_api import served_api
from tests.support.served.stub_service import StubService
from vmtune.client.cli import run


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Vmtune = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("VMTUNE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubService]:
    stub = StubService(tmp_path / "vmtune.sock")
    monkeypatch.setenv("VMTUNE_SOCKET", str(stub.socket))
    with stub.listening():
        yield stub


@pytest.fixture
def vmtune(capsys: pytest.CaptureFixture[str]) -> Vmtune:
    def command(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return command


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """The real application: host a has the VM, host b a QEMU that waits for it."""
    address = tmp_path / "real.sock"
    monkeypatch.setenv("VMTUNE_SOCKET", str(address))
    # Its log would come between what the commands print, which this process does, too.
    with capture_logs(), served_api(tmp_path, address) as api:
        yield api
