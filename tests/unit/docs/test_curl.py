"""The examples with curl do what the pages say, against the real application over fake QEMUs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.support.served.api import Api
from tests.support.served.served_api import served_api
from tests.support.simulated.fakes import VM
from vmtune.api import described
from vmtune.client.connection.http import Client

HOW_TO = Path(__file__).parents[3] / "docs/how-to"
MISSING = [each for each in ("bash", "curl", "jq") if shutil.which(each) is None]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
_FOLLOW = """
follow() { api --no-buffer --max-time 2 "$@" || [ $? = 28 ]; }  # a stream has no end
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Api]:
    with capture_logs(), served_api(tmp_path, tmp_path / "real.sock") as api:
        Client(tmp_path / "real.sock").post(
            "/profiles", {"name": "fast", "values": {"multifd": True, "multifd_channels": 2}}
        )
        yield api


def scripts(page: str) -> str:
    """The blocks of a page, one after the other, as one shell would run them."""
    return "\n".join(
        re.findall(r"^```sh\n(.*?)^```", (HOW_TO / page).read_text("utf-8"), re.M | re.S)
    )


def ran(script: str, folder: Path) -> str:
    """What *script* prints, in a shell that ends at the first failure; curl fails at a refusal."""
    script = (
        script.replace("/run/vmtune/vmtune.sock", str(folder / "real.sock"))
        .replace("curl -s", "curl --fail-with-body -s")
        .replace("rack2", "b")
        .replace("2f1c2a5e-6c7b-4d43-8c0a-0f3a5b1c9d11", str(VM))
        .replace('"UUID"', f'"{VM}"')
        .replace("api -N ", "follow ")
        .replace("Last-Event-ID: 1234", "Last-Event-ID: 0")
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_each_job_of_the_api_page(real: Api, tmp_path: Path) -> None:
    first, rest = scripts("use-the-api.md").split("api $v1/health", 1)
    out = ran(f"{first}{_FOLLOW}api $v1/health{rest}", tmp_path)
    assert '"state": "completed"' in out
    assert "event: migration" in out
    assert real.source.name in out  # from the whole list
    client = Client(tmp_path / "real.sock")
    assert client.get("/profiles/fast")["values"]["multifd_channels"] == 8


def test_a_repeated_request_is_done_once(real: Api, tmp_path: Path) -> None:
    out = ran(scripts("repeat-requests.md"), tmp_path)
    assert "idempotency-replayed: true" in out.lower()
    assert "one migration" in out
    assert len(list(Client(tmp_path / "real.sock").items("/migrations"))) == 1


def test_metrics_and_the_documents_own_example(real: Api, tmp_path: Path) -> None:
    text = (HOW_TO / "monitor.md").read_text("utf-8") + described._INFO
    found = [line for line in text.splitlines() if line.startswith("curl --unix-socket")]
    assert len(found) == 2
    out = ran("\n".join(line.replace("curl ", "curl -s ") for line in found), tmp_path)
    assert "vmtune_" in out
    assert str(VM) in out
