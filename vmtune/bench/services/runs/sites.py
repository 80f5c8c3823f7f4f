"""Where runs can be made: the QEMUs by the names that the settings give them, and the lab."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_interface
from pathlib import Path

from vmtune.bench.block.order import DEFAULT_SCRATCH, BlockOrder
from vmtune.bench.boot.order import DEFAULT_CACHE, BootOrder
from vmtune.bench.catalogue import why_not_alone
from vmtune.bench.machine.environment import Environment, Subject, read_environment, said_version
from vmtune.bench.migration import order
from vmtune.bench.migration.scenarios import BenchHosts
from vmtune.bench.model.runs.run import Run, Testbed
from vmtune.bench.model.scenario.any_kind import AloneScenario, AnyScenario, has_guest
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.migration import Scenario, Transport
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.bench.order import AnyOrder
from vmtune.bench.srcu.order import SrcuOrder
from vmtune.config.settings import SYSTEM_QEMU, BenchQemu
from vmtune.errors import InvalidInput, SetupError
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.settings import LabSettings

Look = Callable[[order.Testbed, bool], Awaitable[BenchHosts]]
"""Finds out what QEMU and the hosts of a testbed can do."""
Sweep = Callable[[Path, Path, LabSettings], None]
"""Ends what runs left that were killed: given where direct runs, their scratch files and the
lab's are."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A program file; it may be replaced while the service runs."""

    path: Path
    changed_ns: int
    kvm: bool


class Testbeds:
    """The testbeds of runs, and what is known of them.

    :param qemus: by name; ``system`` is among them.
    :param folder: where runs keep their sockets; *scratch* where their files are, which are on
        the disk that is measured, and *cache* what is kept between boots.
    :param look: what talks to QEMUs; likewise *sweep*.
    :param sysctls: what tells of this machine right now.
    :param consents: what the operator lets tunable packs send to QEMUs.
    """

    def __init__(
        self,
        qemus: Mapping[str, BenchQemu],
        folder: Path,
        look: Look,
        sweep: Sweep,
        lab: LabSettings | None = None,
        scratch: Path = DEFAULT_SCRATCH,
        cache: Path = DEFAULT_CACHE,
        kvm_usable: Callable[[], bool] = kvm_usable,
        sysctls: Callable[[], Mapping[str, int]] = lambda: read_local_host().sysctls,
        consents: frozenset[str] = frozenset(),
    ) -> None:
        self._qemus = qemus
        self._folder = folder
        self._scratch, self._cache = scratch, cache
        self._look = look
        self._sweep = sweep
        self._lab = lab or LabSettings()
        self._kvm_usable = kvm_usable
        self._sysctls = sysctls
        self._consents = consents
        self._bench_hosts: dict[_Program, BenchHosts] = {}
        self._looking = asyncio.Lock()

    @property
    def qemus(self) -> Mapping[str, BenchQemu]:
        """The QEMUs by name."""
        return self._qemus

    def qemu(self, name: str) -> BenchQemu:
        """The QEMU of that name; the installed one for an empty name.

        :raise InvalidInput: the settings have none of that name.
        """
        found = self._qemus.get(name or SYSTEM_QEMU.name)
        if found is None:
            raise InvalidInput(
                f"there is no QEMU called {name[:60]!r}",
                field="qemu",
                code="unknown_qemu",
                remedy=f"use {' or '.join(self._qemus)}; the setting bench_qemus adds more",
            )
        return found

    def testbed(self, testbed: Testbed, qemu: str) -> order.Testbed:
        """The testbed as the runner takes it.

        :raise InvalidInput: there is no such QEMU.
        """
        return (
            order.LibvirtTestbed(self._lab, self._consents)
            if testbed is Testbed.LAB
            else self._direct(qemu)
        )

    def _direct(self, qemu: str) -> order.DirectTestbed:
        program = self.qemu(qemu)
        return order.DirectTestbed(
            program.binary, program.data_folder, self._folder, self._consents
        )

    def order(self, run: Run, scenario: AnyScenario) -> AnyOrder:
        """What is to be done for *run*.

        :raise InvalidInput: there is no such QEMU.
        """
        if isinstance(scenario, BlockScenario):
            return BlockOrder(
                scenario,
                testbed=self._direct(run.qemu),
                scratch=self._scratch,
                kvm=self.kvm(run.options.get("kvm"), scenario),
            )
        if isinstance(scenario, BootScenario):
            return BootOrder(scenario, testbed=self._direct(run.qemu), cache=self._cache)
        if isinstance(scenario, SrcuScenario):
            return SrcuOrder(scenario)
        return order.RunOrder(
            scenario,
            testbed=self.testbed(run.testbed, run.qemu),
            kvm=self.kvm(run.options.get("kvm"), scenario),
            overrides=frozenset(run.options.get("overrides", ())),
        )

    def kvm(self, wanted: bool | None, scenario: AnyScenario | None = None) -> bool:
        """Whether a run is to use KVM: where it does not say so, if it can. Blocks are mostly
        served without a guest, and a boot's scenario says it."""
        if isinstance(scenario, AloneScenario) and not has_guest(scenario):
            return scenario.needs_kvm
        return self._kvm_usable() if wanted is None else wanted

    def why_not_alone(self, scenario: AloneScenario, testbed: Testbed, qemu: str) -> str:
        """Why it cannot be measured here; empty where nothing is known against it.

        :raise InvalidInput: there is no such QEMU.
        """
        if testbed is not Testbed.DIRECT:
            return "it is measured on one QEMU of this machine, not between two hosts"
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return why_not_alone(scenario, self._direct(qemu), self._kvm_usable(), memory)

    async def bench_hosts(
        self, where: Testbed = Testbed.DIRECT, qemu: str = "", kvm: bool | None = None
    ) -> BenchHosts:
        """What can be run in a testbed. Of a program it is found out once: starting it while a
        run is under way disturbs that.

        :raise InvalidInput: there is no such QEMU.
        :raise SetupError: its program is not there, or does not start; or no lab is up.
        """
        testbed, use_kvm = self.testbed(where, qemu), self.kvm(kvm)
        if not isinstance(testbed, order.DirectTestbed):
            return await self._look(testbed, use_kvm)
        program = _program(testbed.qemu, use_kvm)
        async with self._looking:
            if program not in self._bench_hosts:
                self._bench_hosts[program] = await self._look(testbed, use_kvm)
        bench_hosts = self._bench_hosts[program]
        # An operator may have fixed what prevented a scenario.
        host = replace(bench_hosts.host, sysctls=dict(await asyncio.to_thread(self._sysctls)))
        return replace(bench_hosts, host=host, destination=host)

    def environment(
        self, testbed: Testbed, qemu: str, scenario: AnyScenario, kvm: bool
    ) -> Environment:
        """Where a run is about to run. Blocks for some milliseconds."""
        if not isinstance(scenario, Scenario):
            return self._environment_of_one(qemu, scenario, kvm)
        if testbed is Testbed.LAB:
            lab = self._lab
            return read_environment(
                Subject(
                    lab.qemu,
                    kvm,
                    str(ip_interface(lab.address_b).ip),
                    Path("/run/netns", lab.name_a),
                    _libvirt_version(lab),
                )
            )
        over_network = scenario.transport is Transport.TCP
        program = _program(self.qemu(qemu).binary, kvm).path
        return read_environment(Subject(program, kvm, "127.0.0.1" if over_network else ""))

    def _environment_of_one(self, qemu: str, scenario: AloneScenario, kvm: bool) -> Environment:
        """Where one QEMU is about to run, of which nothing goes over a network."""
        binary = self.qemu(qemu).binary
        # Updates are timed without a QEMU: there need not be one.
        updates = isinstance(scenario, SrcuScenario)
        program = binary if updates else _program(binary, kvm).path
        found = {**read_environment(Subject(program, kvm, ""))}
        del found["network"]
        if updates:
            found.pop("qemu", None)
        if isinstance(scenario, BlockScenario):
            if scenario.driver is None:
                del found["accelerator"]  # there is no guest
                found["fio"] = said_version(("fio", "--version"))
        return found

    def clear_left_behind(self) -> None:
        """End what runs left that did not live to their end. Blocks."""
        self._sweep(self._folder, self._scratch, self._lab)


def _program(binary: Path, kvm: bool) -> _Program:
    """The file of a program, by path or by name.

    :raise SetupError: there is none.
    """
    found = shutil.which(str(binary))
    if found is None:
        raise SetupError(
            f"there is no program {binary}",
            field="qemu",
            code="qemu_missing",
            remedy="install QEMU (on Debian: qemu-system-x86), or correct the setting bench_qemus",
        )
    return _Program(Path(found), Path(found).stat().st_mtime_ns, kvm)


def _libvirt_version(lab: LabSettings) -> str:
    """What the lab's libvirtd says that it is; empty where it cannot be asked."""
    libraries = {}
    if lab.libvirt_root is not None:
        found = sorted(str(path) for path in lab.libvirt_root.glob("usr/lib/*-linux-gnu"))
        libraries = {"LD_LIBRARY_PATH": os.pathsep.join(found)}
    return said_version((str(lab.daemon), "--version"), libraries)
