"""The programs of the pages do what the pages say, against the real application over fake QEMUs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from tests.support.hosts.live import wait_for
from tests.support.served.api import Api
from tests.support.served.browser import free_port
from tests.support.served.prometheus import MONITORING, promtool, why_no_prometheus
from tests.support.served.served_api import served_api
from vmtune.client.connection.http import Client

CHECKOUT = Path(__file__).parents[3]
HOW_TO = CHECKOUT / "docs/how-to"
pytestmark = pytest.mark.integration


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Api]:
    options = {"webhook_own_addresses": True}
    with capture_logs(), served_api(tmp_path, tmp_path / "real.sock", options) as api:
        yield api


def blocks(page: str, language: str) -> list[str]:
    text = (HOW_TO / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Of one who uses the service's socket, with its commands at hand."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VMTUNE_")}
    packages = str(CHECKOUT / "packaging/client")
    socket = str(folder / "real.sock")
    return {**kept, "PATH": path, "PYTHONPATH": packages, "VMTUNE_SOCKET": socket, **more}


def shell(script: str, folder: Path) -> str:
    """What *script* prints, in a shell that ends at the first failure."""
    done = subprocess.run(
        ["sh", "-euc", script],
        cwd=folder, env=environment(folder), capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def program(text: str, folder: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that runs, with what it prints in ``stdout``."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", text],
        cwd=folder, env=environment(folder, **more), stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """The first line with *words* that it prints."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"it ended, and did not print {words}")


def test_the_python_clients_examples(served: Api, tmp_path: Path) -> None:
    migrates, follows = blocks("use-the-python-client.md", "python")
    migrates = migrates.replace("rack1", "a").replace("rack2", "b")
    with program(migrates, tmp_path) as process:
        said, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    first, refusal = said.splitlines()
    assert first.strip() == "completed"
    assert "not_found" in refusal and "rack9" in refusal
    (record,) = Client(tmp_path / "real.sock").items("/migrations")
    # From the first event on: without it, from when it has connected.
    follows = follows.replace('after=""', 'after="0"')
    with program(follows, tmp_path) as process:
        assert record["id"] in line_with(process, "completed")


def test_a_webhook_from_its_secret_to_its_removal(served: Api, tmp_path: Path) -> None:
    (commands,), (receiver,) = blocks("webhooks.md", "sh"), blocks("webhooks.md", "python")
    port = free_port()
    commands = commands.replace("https://ops.example/vmtune", f"http://127.0.0.1:{port}/vmtune")
    create, rest = commands.split("\n", 1)
    secret = re.search(r"whsec_\S+", shell(create, tmp_path))
    assert secret is not None
    receiver = receiver.replace('("0.0.0.0", 8480)', f'("127.0.0.1", {port})')
    there = Client(tmp_path / "real.sock")

    def deliveries(state: str) -> int:
        (webhook,) = there.get("/webhooks")["items"]
        found = there.get(f"/webhooks/{webhook['id']}/deliveries")["items"]
        return [each["state"] for each in found].count(state)

    with program(receiver, tmp_path, SECRET=secret[0]) as process:
        shell(rest, tmp_path)
        assert line_with(process, '"test"').startswith("True {")
        wait_for(lambda: deliveries("delivered") == 1, "the answer to be noted")
        shell("vmtune webhook replay ops 1", tmp_path)
        assert line_with(process, '"test"').startswith("True {")
        # Both secrets sign now: the receiver still has the old one.
        shell("vmtune webhook rotate ops; vmtune webhook test ops", tmp_path)
        assert line_with(process, '"test"').startswith("True {")
        wait_for(lambda: deliveries("delivered") == 2, "the answer to be noted")
    shell(
        "vmtune webhook deliveries ops --state failed; vmtune webhook change ops --rest; "
        "vmtune webhook change ops --active; vmtune webhook remove ops",
        tmp_path,
    )
    assert there.get("/webhooks")["items"] == []


def test_prometheus_is_told_on_the_page_what_is_shipped() -> None:
    (shown,) = blocks("monitor.md", "yaml")
    assert yaml.safe_load(shown) == yaml.safe_load((MONITORING / "prometheus.yml").read_text())


@pytest.mark.skipif(bool(why_no_prometheus()), reason=why_no_prometheus() or "never")
def test_prometheus_takes_what_is_shipped(tmp_path: Path) -> None:
    token = tmp_path / "vmtune.token"
    token.write_text("vmt_x\n")
    shipped = (MONITORING / "prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    config.write_text(shipped.replace("/etc/prometheus/vmtune.token", str(token)))
    (tmp_path / "vmtune-alerts.yml").write_text((MONITORING / "vmtune-alerts.yml").read_text())
    ran = promtool("check", "config", config)
    assert ran.returncode == 0 and "rules found" in ran.stdout, ran.stdout + ran.stderr
