"""Ways to a guest's agent: which socket is its channel's, and what libvirt says in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    OutcomeUnknown,
    SetupError,
    VmtuneError,
)
from vmtune.hypervisor.libvirt.agent import LibvirtChannel
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qemu.guest_agent import CHANNEL, GuestAgent
from vmtune.hypervisor.qmp.agent_socket import find_socket

VM = UUID(int=1)
PORT = {"type": "child<virtserialport>"}


class Monitor:
    """A QEMU's objects and character devices.

    :param ports: name and character device of each port, by its id.
    :param chardevs: what each character device is called by, by its label.
    """

    def __init__(
        self, ports: Mapping[str, tuple[str, str]], chardevs: Mapping[str, str], folder: str = ""
    ) -> None:
        self.ports, self.chardevs = ports, chardevs
        self.folder = f"/machine/peripheral{folder}"

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        check(command, arguments)
        given = arguments or {}
        if command == "query-chardev":
            return [{"label": n, "filename": f} for n, f in self.chardevs.items()]
        if command == "qom-list":
            if given["path"] != self.folder:
                raise CommandRefused("no such folder")
            return [{"name": id, **PORT} for id in self.ports] + [{"name": "x", "type": "string"}]
        folder, _, id = given["path"].rpartition("/")
        assert (command, folder) == ("qom-get", self.folder)
        return self.ports[id][("name", "chardev").index(given["property"])]


@pytest.mark.parametrize("folder", ["", "-anon"])
@pytest.mark.parametrize("state", ["", "disconnected:"])
async def test_the_socket_of_the_agents_port(folder: str, state: str) -> None:
    ports = {"p0": ("other", "c0"), "p1": (CHANNEL, "c1")}
    names = {"c0": "unix:/run/other,server=on", "c1": f"{state}unix:/run/a,b/ga,server=on"}
    assert await find_socket(Monitor(ports, names, folder)) == Path("/run/a,b/ga")


@pytest.mark.parametrize(
    ("ports", "name", "said"),
    [
        ({}, "unix:/run/ga,server=on", "no channel"),
        ({"p0": ("other", "c")}, "unix:/run/ga,server=on", "no channel"),
        ({"p0": (CHANNEL, "c")}, "unix:/run/ga", "not a socket on which its QEMU listens"),
        ({"p0": (CHANNEL, "c")}, "spicevmc", "not a socket"),
        ({"p0": (CHANNEL, "gone")}, "unix:/run/ga,server=on", "not a socket"),
    ],
)
async def test_a_vm_without_one_is_told_how_to_have_it(
    ports: dict[str, tuple[str, str]], name: str, said: str
) -> None:
    with pytest.raises(SetupError, match=said) as caught:
        await find_socket(Monitor(ports, {"c": name}))
    (problem,) = caught.value.problems
    assert (problem.field, problem.code) == ("vm", "no_guest_agent")
    assert CHANNEL in problem.remedy


class Domain:
    """Answers as libvirt does, or refuses."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def domain(self, vm: UUID) -> Domain:
        assert vm == VM
        return self

    def agent(self, command: str, within_s: int) -> str:
        self.asked.append((command, within_s))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def change(self, call: Callable[[Any], str]) -> str:
        return call(self)


def agent_of(domain: Domain) -> GuestAgent:
    return GuestAgent(LibvirtChannel(domain, VM))  # type: ignore[arg-type] # it is all of a link


async def test_libvirt_lends_its_channel() -> None:
    domain = Domain('{"return": {"pid": 5}}')
    agent = agent_of(domain)
    order = {"path": "fio", "arg": ["--version"]}
    assert await agent.execute("guest-exec", order) == {"pid": 5}
    await agent.close()
    ((text, within_s),) = domain.asked
    assert (json.loads(text), within_s) == ({"execute": "guest-exec", "arguments": order}, 10)
    with pytest.raises(CommandRefused, match="does not have guests do"):
        await agent.execute("guest-shutdown", {})
    assert len(domain.asked) == 1


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (74, SetupError, "no_guest_agent"),
        (86, HostUnreachable, "no_guest_agent"),
        (97, HostUnreachable, "no_guest_agent"),
        (112, OutcomeUnknown, "outcome_unknown"),
        (113, CommandRefused, "command_refused"),
    ],
)
async def test_what_libvirt_says_in_an_agents_place(
    number: int, kind: type[VmtuneError], code: str
) -> None:
    agent = agent_of(Domain(LibvirtRefused("QEMU guest agent is not connected", number)))
    with pytest.raises(kind, match="is not connected") as caught:
        await agent.execute("guest-exec-status", {"pid": 5})
    assert [problem.code for problem in caught.value.problems] == [code]
