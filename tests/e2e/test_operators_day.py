"""The tutorial of an operator's day: its commands do what it says, on the VMs of the demo."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune.admin.demo import overview as demo
from vmtune.client.connection.http import Document
from vmtune.lab.domain_xml import kvm_usable

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/operators-day.md"
NO_LAB = why_no_lab() or ("" if kvm_usable() else "KVM cannot be used")
pytestmark = [
    pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("day"), number=94) as made:
        demo.fill(made.settings, made.client, ("a", "b"), verbose=False)
        yield made


def blocks() -> list[list[str]]:
    """The tutorial's commands, block by block: those that are typed into the second terminal."""
    text = TUTORIAL.read_text("utf-8").split("## Morning", 1)[1]
    found = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
    listed = [block.splitlines() for block in found]
    return [block for block in listed if re.match(r"vmtune ", block[0])]


def of_db1(it: Live) -> Document:
    """Its newest migration."""
    return next(it.client.items("/migrations", {"search": "db1"}))


def exits(comment: str) -> tuple[int, ...]:
    """How a command may end, by what stands behind it."""
    if "exits 2" not in comment:
        return (0,)
    return (0, 2) if "exits 2 if" in comment else (2,)


def test_each_command_exits_as_it_says(it: Live) -> None:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "VMTUNE_SOCKET": str(it.client.socket_path), "PATH": programs}
    ran = 0
    for line in (line for block in blocks() for line in block):
        command, _, comment = line.partition("#")
        done = subprocess.run(
            ["bash", "-c", command],
            env=env, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode in exits(comment), f"{line}: {done.stdout} {done.stderr}"
        ran += 1
        if "migration set" in command:
            wait_for(lambda: of_db1(it)["ended"], "db1 to arrive", within_s=300)
            assert of_db1(it)["state"] == "completed"
    assert ran > 20
    assert it.client.get("/hosts/b")["maintenance_since"] is None
    assert not [vm for vm in it.client.items("/vms", {"host": "b"}) if vm["state"] == "running"]
