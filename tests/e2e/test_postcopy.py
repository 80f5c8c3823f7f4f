"""Connections that break in post-copy, between real QEMUs: what the record says, and recovery."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.hosts.live import ENDED, Service, wait_for
from tests.support.qemus.qemu import (
    SMALL_PC,
    Build,
    RunningQemu,
    alike,
    builds,
    memory_to_send,
    running,
)
from vmtune.client.cli import run as vmtune
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.engine.end_state import ON_BOTH_IN_PART, ROLLED_BACK

SLOWLY = 4 << 10
"""Bytes a second, of which QEMU makes some 300 KiB: see :func:`memory_to_send`."""
VALUES = {
    "postcopy": True,
    "max_bandwidth_bytes_per_s": SLOWLY,
    "max_postcopy_bandwidth_bytes_per_s": SLOWLY,
}


KVM_PC = tuple("kvm" if word == "tcg" else word for word in SMALL_PC)


def _why_not() -> str:
    if shutil.which("ss") is None:
        return "ss of iproute2 is not installed, which breaks connections"
    if not os.access("/dev/kvm", os.W_OK):
        return "/dev/kvm cannot be used: with TCG, vCPUs that wait for a page hold QEMU's main loop"
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "never")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("postcopy"))
    made.start()
    try:
        for how in ("auto", "manual"):
            made.client.post("/profiles", {
                "name": how,
                "values": {**VALUES, "postcopy_recovery": how},
                "steps": [{"when": {"after_iterations": 0}, "then": {"do": "postcopy"}}],
            })  # fmt: skip
        yield made
    finally:
        made.stop()


OPERATORS_CHANNELS = 7
"""Set on both QEMUs before vmtune knew them, and not by the profile."""


@dataclass
class Moving:
    """A migration in post-copy, by TCP."""

    service: Service
    id: str
    source: RunningQemu
    destination: RunningQemu

    def now(self) -> Document:
        return self.service.client.get(f"/migrations/{self.id}")

    def until(self, state: str) -> Document:
        wait_for(lambda: self.now()["state"] == state, f"the migration to be {state}")
        return self.now()

    def connections(self) -> list[tuple[str, str]]:
        """The ports of the source QEMU's connections: its own, and the destination's."""
        listed = subprocess.run(
            ["ss", "-Htnp", "state", "established"], capture_output=True, text=True, check=True
        ).stdout
        return re.findall(
            rf"127\.0\.0\.1:(\d+)\s+127\.0\.0\.1:(\d+)\s.*pid={self.source.pid},", listed
        )

    def cut(self) -> None:
        """Break its connections, as a reset of the network does."""
        wait_for(lambda: bool(self.connections()), f"a connection of {self.now()['state']}")
        found = self.connections()
        for own, other in found:
            match = ["(", "sport", "=", own, "and", "dport", "=", other, ")"]
            subprocess.run(["ss", "-K", *match], capture_output=True, check=True)

    def all_is_sent(self) -> bool:
        samples = list(self.service.client.items(f"/migrations/{self.id}/samples"))
        return bool(samples) and samples[-1]["remaining_bytes"] == 0

    def at_full_speed(self) -> None:
        self.until("active")
        fast = dict.fromkeys(("max_bandwidth_bytes_per_s", "max_postcopy_bandwidth_bytes_per_s"), 0)
        self.service.client.patch(f"/migrations/{self.id}", {"values": fast})


@contextmanager
def in_postcopy(
    service: Service, build: Build, base: Path, profile: str, mebibytes: int = 24
) -> Iterator[Moving]:
    if build.why_not:
        pytest.skip(build.why_not)
    vm, names = uuid4(), [f"{side}-{secrets.token_hex(2)}" for side in "ab"]
    waits = ("-incoming", "defer")
    channels = ("-global", f"migration.multifd-channels={OPERATORS_CHANNELS}")
    operators = (*channels, *memory_to_send(base, mebibytes))
    with (
        running(build, base / "a", uuid=vm, machine=KVM_PC, extra=operators) as here,
        running(build, base / "b", uuid=vm, machine=KVM_PC, extra=(*waits, *operators)) as there,
    ):
        for name, folder in zip(names, "ab", strict=True):
            service.client.post("/hosts", {
                "name": name,
                "uri": f"qmp+unix://{base / folder}",
                "migration_address": "127.0.0.1",
            })  # fmt: skip
        order = {"vm": str(vm), "destination": names[1], "profile": profile}
        record = service.client.post("/migrations", order)
        moving = Moving(service, record["id"], here, there)

        def switched() -> bool:
            steps = moving.now()["step_records"]
            return any(step["effect"] == "done" for step in steps)

        wait_for(switched, "post-copy to begin")

        def runs_there() -> bool:
            found = service.client.get(f"/hosts/{names[1]}/vms")["items"]
            return any(each["uuid"] == str(vm) and each["state"] == "running" for each in found)

        wait_for(runs_there, "the guest to run on the destination")
        try:
            yield moving
        finally:
            service.revive()
            wait_for(lambda: moving.now()["state"] in ENDED, "the migration to end")
            for name in names:
                service.client.delete(f"/hosts/{name}")


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_it_is_recovered_by_itself(service: Service, build: Build, tmp_path: Path) -> None:
    with in_postcopy(service, build, tmp_path, "auto") as moving:
        moving.cut()

        def recovered() -> bool:
            done = [s["effect"] for s in moving.now()["step_records"] if s["number"] is None]
            return "done" in done

        wait_for(recovered, "post-copy to be recovered")
        moving.at_full_speed()
        done = moving.until("completed")
        (problem,) = done["problems"]
        assert problem["code"] == "postcopy_resumed"
        was = r"post-copy was paused( \(.+\))?, and went on at .+ UTC"  # 7.2 gives no reason
        assert re.fullmatch(was, problem["message"])
        assert done["totals"]["total_time_ms"] > 0
        assert done["postcopy"]["blocked_ms"] >= 0
        assert len(done["postcopy"]["vcpu_blocked_ms"]) == 1


@pytest.mark.parametrize("build", alike())
def test_a_user_recovers_it_after_the_service_was_killed(
    service: Service, build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_postcopy(service, build, tmp_path, "manual") as moving:
        moving.cut()
        paused = moving.until("postcopy-paused")
        (problem,) = paused["problems"]
        assert "do not shut down either host" in problem["message"]
        assert service.client.get("/health")["postcopy_paused"] == 1
        service.kill()
        service.start()
        assert moving.until("postcopy-paused")["problems"] == [problem]
        with pytest.raises(ClientError, match="recover"):
            service.client.delete(f"/migrations/{moving.id}")
        socket = str(service.client.socket_path)
        assert vmtune(["migration", "recover", moving.id, "--socket", socket]) == 0
        assert "goes on" in capsys.readouterr().out
        moving.at_full_speed()
        done = moving.until("completed")
        assert [problem["code"] for problem in done["problems"]] == ["postcopy_resumed"]
        readings = service.client.get(f"/vms/{done['vm']}/effective")["readings"]
        assert readings["postcopy"]["value"] is False
        assert readings["multifd_channels"]["value"] == OPERATORS_CHANNELS


def test_a_guest_whose_destination_ends_is_said_to_be_lost(
    service: Service, tmp_path: Path
) -> None:
    (build, *_) = builds()
    with in_postcopy(service, build, tmp_path, "manual") as moving:
        moving.destination.kill()
        done = moving.until("failed")
        failure = done["failure"]
        if build.release >= (10, 2) and "rolled back" in failure:
            return  # so long as the destination had not confirmed that it runs (postcopy-device)
        assert "guest lost" in failure and "must not be resumed" in failure


RESUMES = [build for build in builds() if (10, 0) <= build.release < (10, 2)]


@pytest.mark.parametrize("build", RESUMES, ids=lambda build: build.label)
def test_a_guest_that_runs_on_both_hosts_is_said_to(
    service: Service, build: Build, tmp_path: Path
) -> None:
    """All was sent, and the connection broke before it had arrived: QEMU resumes the source."""
    with in_postcopy(service, build, tmp_path, "manual", mebibytes=1) as moving:
        os.kill(moving.destination.pid, signal.SIGSTOP)
        try:
            moving.at_full_speed()
            wait_for(moving.all_is_sent, "all to be sent")
            moving.cut()
        finally:
            os.kill(moving.destination.pid, signal.SIGCONT)
        assert ON_BOTH_IN_PART in moving.until("unknown")["failure"]
        moving.destination.kill()
        wait_for(lambda: moving.now()["state"] != "unknown", "both hosts to be asked again")
        assert (moving.now()["state"], moving.now()["failure"]) == ("failed", ROLLED_BACK)
