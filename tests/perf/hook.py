"""What libvirt's hook adds to ``migrate begin``, beside an empty hook in sh.

Each arm runs a hook as libvirt does, with a domain's XML on stdin, in turns: the empty one;
vmtune's with the service there, whose profile changes the XML (the most that it does); with no
socket, as where the service was stopped; with a socket that nobody listens at, as where it was
killed. And in fewer turns with a service that hangs.

    python -m tests.perf.hook [REPEATS]
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder, interleaved, timed_ms
from vmtune.admin.demo.service import running_service
from vmtune.hook import HookSettings, Script
from vmtune.lab import LabSettings, VmSettings
from vmtune.lab.domain_xml import VmFiles, build_domain_xml

REPEATS = 60
HANGING_REPEATS = 5
LIMIT_MS = 1000
EMPTY = "#!/bin/sh\nexit 0\n"
WANTED = "migration.announce-rounds=8"


def a_hook(path: Path, text: str) -> Path:
    """A hook as a file that libvirt would run."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def migrate_begin(hook: Path, xml: bytes, expected: str) -> None:
    """Run a hook as libvirt does before a VM arrives, and see that it did its work."""
    done = subprocess.run(
        [hook, "vm", "migrate", "begin", "-"],
        input=xml,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    assert (expected.encode() in done.stdout) if expected else (done.stdout == b""), done.stdout


def a_domain(at: Path) -> bytes:
    """A VM's XML, with as much in it as those of real VMs have (some 8 KB)."""
    files = VmFiles(LabSettings().qemu, at / "kernel", at / "serial")
    xml = build_domain_xml(VmSettings(), files, kvm=True)
    note = "<description>" + "x" * max(0, 8192 - len(xml)) + "</description></domain>"
    return xml.replace("</domain>", note).encode()


def run(at: Path, repeats: int) -> dict[str, list[float]]:
    """Each arm's times in milliseconds."""
    os.environ["VMTUNE_DESTINATION_COMMAND_LINE"] = "true"
    xml = a_domain(at)
    empty = a_hook(at / "empty", EMPTY)
    asking, stopped, killed = (
        a_hook(at / name, Script.shipped().with_settings(HookSettings(str(where), LIMIT_MS)).text)
        for name, where in (
            ("asking", at / "vmtune.sock"),
            ("stopped", at / "nothing.sock"),
            ("killed", at / "dead.sock"),
        )
    )
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(at / "dead.sock"))
    with running_service(at) as service:
        service.client.post("/profiles", {"name": "p", "values": {"announce_rounds": 8}})
        service.client.post("/assignments", {"target": "default", "key": "", "profile": "p"})
        arms = interleaved(
            (
                lambda _: migrate_begin(empty, xml, ""),
                lambda _: migrate_begin(asking, xml, WANTED),
                lambda _: migrate_begin(stopped, xml, ""),
                lambda _: migrate_begin(killed, xml, ""),
            ),
            repeats,
        )
        os.kill(service.pid, signal.SIGSTOP)
        try:
            hanging = [
                timed_ms(lambda: migrate_begin(asking, xml, "")) for _ in range(HANGING_REPEATS)
            ]
        finally:
            os.kill(service.pid, signal.SIGCONT)
    return dict(zip(("empty", "asking", "stopped", "killed"), arms, strict=True)) | {
        "hanging": hanging
    }


def main() -> None:
    """Measure and report."""
    where = environment()
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    with folder() as at:
        found = run(at, repeats)
    for arm, times in found.items():
        print(f"migrate begin, {arm}: {spread(times)} ms, {len(times)} repeats")

    def added(arm: str) -> float:
        pairs = zip(found[arm], found["empty"], strict=True)
        return statistics.median(mine - theirs for mine, theirs in pairs)

    checks = [
        Check("hook beside an empty one, median", added("asking"), "ms", 25, "max"),
        Check("with the service stopped, median", added("stopped"), "ms", 30, "max"),
        Check("with the service killed, median", added("killed"), "ms", 30, "max"),
        Check("with a service that hangs, at most", max(found["hanging"]), "ms", LIMIT_MS, "max"),
    ]
    finish("hook", checks, found, where)


if __name__ == "__main__":
    main()
