"""``vmtune virsh-args``, and virsh's own options of ``vmtune migrate``."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import Reply, StubService, page
from tests.unit.client.conftest import Vmtune

HELP = "migrate <domain> <desturi> [--live] [--bandwidth <number>] [--parallel]"
SAID = {
    "command": "virsh -c qemu:///system migrate --live --p2p --parallel --zerocopy db1 qemu+tls://b/",
    "flags": ["--parallel", "--zerocopy"],
    "options": [
        {"option": "--parallel", "value": "", "tunable": "multifd", "wanted": True},
        {"option": "--zerocopy", "value": "", "tunable": "zero_copy_send", "wanted": True},
    ],
    "not_expressed": [
        {
            "tunable": "downtime_limit_ms",
            "wanted": {"value": 450, "text": "450 ms"},
            "reason": "no option of virsh",
        }
    ],
}


@pytest.fixture
def virsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virsh that knows little."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "virsh"
    program.write_text(f'#!/bin/sh\n[ "$1" = help ] && echo "{HELP}" || echo 4.0.0\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


def answer(service: StubService, said: object) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    service.on("POST", f"/vms/{docs.VM}/plan", {**docs.plan(clean=True), "virsh": said})


def test_only_what_the_installed_virsh_knows_is_printed(
    service: StubService, vmtune: Vmtune, virsh: Path
) -> None:
    answer(service, SAID)
    ran = vmtune("virsh-args", "db1", "rack2", "--profile", "fast")
    assert (ran.code, ran.out) == (0, "--parallel\n")
    assert "downtime_limit_ms: no option of virsh" in ran.err
    assert "zero_copy_send: virsh 4.0.0 has no --zerocopy" in ran.err
    asked = service.only("POST", f"/vms/{docs.VM}/plan").body
    assert asked == {"profile": "fast", "revision": None, "destination": "rack2"}


def test_as_json(service: StubService, vmtune: Vmtune, virsh: Path) -> None:
    answer(service, SAID)
    ran = vmtune("virsh-args", "db1", "rack2", "--json")
    assert ran.document["flags"] == ["--parallel"]
    assert ran.document["virsh"] == "4.0.0"
    assert [u["tunable"] for u in ran.document["not_expressed"]] == [
        "downtime_limit_ms",
        "zero_copy_send",
    ]
    assert ran.err == ""


def test_a_host_without_libvirt_is_told(service: StubService, vmtune: Vmtune, virsh: Path) -> None:
    answer(service, None)
    ran = vmtune("virsh-args", "db1", "rack2")
    assert (ran.code, ran.out) == (1, "")
    assert "has no libvirt" in ran.err


def test_a_machine_without_virsh_is_told(
    service: StubService, vmtune: Vmtune, virsh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(service, SAID)
    virsh.unlink()
    monkeypatch.setenv("PATH", str(virsh.parent))
    ran = vmtune("virsh-args", "db1", "rack2")
    assert (ran.code, ran.out) == (1, "")
    assert "libvirt-clients" in ran.err


def test_migrate_takes_virshs_options(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    service.on("POST", "/migrations", Reply(docs.migration(), 202))
    ran = vmtune(
        *(
            "migrate",
            "db1",
            "rack2",
            "--live",
            "--p2p",
            "--parallel",
            "--parallel-connections",
            "4",
        ),
        *("--bandwidth", "100", "--timeout", "9", "--set", "downtime_limit_ms=1s"),
        *("--set", "multifd_channels=8", "--no-wait"),
    )
    assert ran.code == 0
    body = service.only("POST", "/migrations").body
    assert body["values"] == {
        "multifd": True,
        "multifd_channels": "8",
        "max_bandwidth_bytes_per_s": 100 << 20,
        "downtime_limit_ms": "1s",
    }
    assert body["steps"] == [{"when": {"after_s": 9}, "then": {"do": "pause"}}]


def test_what_vmtune_does_not_do_is_refused_before_anything_is_asked(
    service: StubService, vmtune: Vmtune
) -> None:
    ran = vmtune("migrate", "db1", "rack2", "--tunnelled", "--xml", "new.xml")
    assert ran.code == 1
    assert "does not take --tunnelled" in ran.err
    assert "use --tls" in ran.err
    assert "does not take --xml" in ran.err
    assert not service.asked
