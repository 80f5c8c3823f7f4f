"""The service as a process, begun and asked by the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.client.conftest import Vmtune
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client
from vmtune.client.connection.sse import Backoff

pytestmark = pytest.mark.integration

COMMAND = [sys.executable, "-m", "vmtune"]


@contextmanager
def service(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A service with its databases and socket in *folder*."""
    options = ["--state-dir", str(folder), "--socket", str(folder / "s"), "--listen-port", "0"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([*COMMAND, "serve", *options], stdout=log, stderr=log)
    try:
        backoff = Backoff(give_up_after_s=30)
        while True:
            try:
                Client(folder / "s").get("/health")
                break
            except ClientError as error:
                assert process.poll() is None, (folder / "log").read_text()
                backoff.failed(error)
        yield process
    finally:
        process.terminate()
        assert process.wait(20) == 0, (folder / "log").read_text()


def test_the_schema_is_made_before_the_service_starts(tmp_path: Path, vmtune: Vmtune) -> None:
    place = ("--state-dir", str(tmp_path))
    missing = vmtune("db", "current", *place)
    assert missing.code == 2
    assert "has no schema yet" in missing.out
    address = ("--socket", str(tmp_path / "s"), "--listen-port", "0")
    refused = subprocess.run(
        [*COMMAND, "serve", *place, *address], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "vmtune db upgrade" in refused.stderr
    assert "Traceback" not in refused.stderr
    upgraded = vmtune("db", "upgrade", *place, "--json").document
    assert upgraded["up_to_date"]
    assert upgraded["added"]
    assert "already" in vmtune("db", "upgrade", *place).out
    assert vmtune("db", "current", *place).code == 0


def test_following_events_survives_a_restart_of_the_service(tmp_path: Path, vmtune: Vmtune) -> None:
    assert vmtune("db", "upgrade", "--state-dir", str(tmp_path)).code == 0
    address = ("--socket", str(tmp_path / "s"))
    follower = None
    try:
        with service(tmp_path):
            assert vmtune("profile", "create", "one", "multifd=on", *address).code == 0
            follower = subprocess.Popen(
                [*COMMAND, "events", "--watch", "--after", "0", "--json", *address],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert follower.stdout is not None
            first = json.loads(follower.stdout.readline())
        with service(tmp_path):
            assert vmtune("profile", "create", "two", "multifd=on", *address).code == 0
            second = json.loads(follower.stdout.readline())
        follower.send_signal(signal.SIGINT)
        _, told = follower.communicate(timeout=20)
    finally:
        if follower is not None and follower.poll() is None:
            os.kill(follower.pid, signal.SIGKILL)
            follower.communicate()
    assert (first["subject"], second["subject"]) == ("one", "two")
    assert second["id"] > first["id"]
    assert follower.returncode == 0
    assert "reconnecting" in told
    assert "Traceback" not in told
