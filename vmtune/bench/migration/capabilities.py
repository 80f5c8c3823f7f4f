"""What a machine's QEMU can do, found out before any VM is made for a run."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.migration.scenarios import BenchHosts
from vmtune.bench.model.settable import settable
from vmtune.errors import HostUnreachable, OutcomeUnknown, SetupError
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.host.facts import HostFacts, VmFacts

_ANSWERS_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.02
_ENDS_WITHIN_S = 5.0
_MAX_SAID = 500
# Without a machine it has no memory, no firmware and no need of KVM, and offers the same
# capabilities and parameters.
_NO_MACHINE = ("-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none")


async def look(
    testbed: DirectTestbed | None = None,
    kvm: bool | None = None,
    hosts: tuple[HostFacts, HostFacts] | None = None,
) -> BenchHosts:
    """Start a QEMU without a machine for a moment, and ask it.

    :param kvm: whether runs are to use it; None: where this machine has a usable one.
    :param hosts: source and destination as libvirt sees them; None: both are this machine.
    :raise SetupError: there is no such QEMU, or it does not start.
    """
    usable = kvm_usable()
    with tempfile.TemporaryDirectory(prefix="vmtune-look-") as folder:
        async with _running(testbed or DirectTestbed(), Path(folder)) as process:
            facts, host = await _ask(Path(folder), process)
    source, destination = hosts or (host, host)
    consents = testbed.consents if testbed else frozenset()
    use = usable if kvm is None else kvm
    why_not = "it is switched off" if usable else "this machine has no usable /dev/kvm"
    return BenchHosts(source, destination, facts, use, "" if use else why_not, consents)


@contextlib.asynccontextmanager
async def _running(
    testbed: DirectTestbed, folder: Path
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A QEMU with its monitor in *folder*, until the block is left."""
    data = ("-L", str(testbed.data_folder)) if testbed.data_folder else ()
    monitor = ("-qmp", f"unix:{folder / 'look.sock'},server=on,wait=off")
    with (folder / "said").open("wb") as said:
        try:
            process = await asyncio.create_subprocess_exec(
                str(testbed.qemu), *data, *_NO_MACHINE, *monitor,
                stdin=asyncio.subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        except OSError as error:
            raise SetupError(
                f"{testbed.qemu} cannot be started: {error.strerror}",
                field="qemu",
                code="no_qemu",
                remedy="install QEMU, or name the program",
            ) from error
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _ask(folder: Path, process: asyncio.subprocess.Process) -> tuple[VmFacts, HostFacts]:
    """What the QEMU in *folder* offers, and this machine."""
    driver = QmpDriver(f"qmp+unix://{folder}", tunables=settable())
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    try:
        while True:
            with contextlib.suppress(HostUnreachable, OutcomeUnknown):
                for vm in await driver.list_vms():
                    facts = await driver.vm_facts(vm.uuid)
                    return facts, replace(await driver.host_facts(), qemu=facts.qemu)
            if process.returncode is not None or time.monotonic() > deadline:
                said = (folder / "said").read_text(errors="replace").strip()[-_MAX_SAID:]
                raise SetupError(
                    f"QEMU does not answer: {said or 'it said nothing'}",
                    field="qemu",
                    code="qemu_silent",
                    remedy="start the program by hand, and see what it says",
                )
            await asyncio.sleep(_LOOK_EVERY_S)
    finally:
        await driver.close()
