"""A real Prometheus, and promtool, which checks rules without one."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

MONITORING = Path(__file__).parents[3] / "packaging/monitoring"
_STARTS_WITHIN_S = 60.0


def why_no_prometheus() -> str:
    """Why none can be run here; empty if one can."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What promtool says of it."""
    return subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


class Prometheus:
    """One that runs.

    :param origin: where it answers.
    """

    def __init__(self, origin: str) -> None:
        self._client = httpx.Client(base_url=origin, timeout=30)

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, path: str, **query: str) -> Any:
        """The data of its HTTP API's answer."""
        response = self._client.get(f"/api/v1/{path}", params=query)
        document = response.json()
        assert document["status"] == "success", document
        return document["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def close(self) -> None:
        """Hang up."""
        self._client.close()


@contextmanager
def running_prometheus(
    folder: Path, port: int, targets: list[str], token: Path, interval: str = "1s"
) -> Iterator[Prometheus]:
    """A Prometheus with the configuration and the rules that vmtune ships.

    :param targets: what it scrapes, in place of the address in the configuration.
    :param token: the file that has the token, in place of the configuration's.
    :param interval: how often it scrapes and evaluates the rules.
    """
    configuration = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    (job,) = configuration["scrape_configs"]
    job["static_configs"] = [{"targets": targets}]
    job["authorization"]["credentials_file"] = str(token)
    configuration["global"] = {"scrape_interval": interval, "evaluation_interval": interval}
    configuration["rule_files"] = [str(MONITORING / name) for name in configuration["rule_files"]]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    origin = f"http://127.0.0.1:{port}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    made = Prometheus(origin)
    try:
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while not made.ready():
            said = (folder / "prometheus.log").read_text()
            assert process.poll() is None, said[-3000:]
            assert time.monotonic() < deadline, said[-3000:]
            time.sleep(0.1)
        yield made
    finally:
        made.close()
        process.terminate()
        process.wait(30)
