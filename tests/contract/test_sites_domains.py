"""Domains as sites have them, on a real libvirt: defined, changed, put back, and started where this
machine can."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.drivers.bench_libvirt import hosts, running_lab
from tests.support.hosts.live import why_no_lab
from vmtune import lab
from vmtune.errors import LabError
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.lab import LabSettings
from vmtune.model.host.facts import VmState
from vmtune.model.plan.changes import Change, undo

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")

FILES = {path.stem: path for path in (Path(__file__).parents[1] / "data/domains").glob("*.xml")}
MAY_BE_REFUSED = {
    "sev": "'sev' launch security is not supported",
    "windows": "TPM version '2.0' is not supported",
}
"""By libvirt itself, where the processor has no SEV or swtpm is not installed."""
WHOLE_CPU = "<cpu mode='host-passthrough' check='none' migratable='on'/>"
NEARLY_WHOLE_CPU = (
    "<cpu mode='host-passthrough' check='none' migratable='on'>"
    "<feature policy='disable' name='arch-capabilities'/></cpu>"
)
"""For KVM that offers QEMU bits of IA32_ARCH_CAPABILITIES and then refuses them, as some nested one
does: QEMU 10.0.2 aborts."""
WANTED = [Change("emulator_cpus", "0"), Change("huge_pages", "2M"), Change("numa_nodes", "0")]


@pytest.fixture(scope="module")
def settings() -> LabSettings:
    return running_lab(False)


@pytest.fixture
async def driver(settings: LabSettings) -> AsyncIterator[LibvirtDriver]:
    a, _ = hosts(settings)
    made = LibvirtDriver(a.uri, peer_uri=a.peer_uri)
    try:
        yield made
    finally:
        await made.close()
        for path in FILES.values():
            name = re.findall("<name>(.*)</name>", path.read_text())[0]
            for words in (("destroy", name), ("undefine", name, "--nvram", "--tpm")):
                try:
                    lab.virsh(a.uri, *words)
                except LabError:
                    continue  # it was not defined, or does not run


def define(settings: LabSettings, text: str) -> UUID:
    file = settings.folder / "site.xml"
    file.write_text(text)
    lab.virsh(hosts(settings)[0].uri, "define", "--validate", str(file))
    return UUID(re.findall("<uuid>(.*)</uuid>", text)[0])


@pytest.mark.parametrize("stem", sorted(FILES))
async def test_its_configuration_is_changed_and_put_back(
    stem: str, settings: LabSettings, driver: LibvirtDriver
) -> None:
    try:
        vm = define(settings, FILES[stem].read_text())
    except LabError as refusal:
        assert MAY_BE_REFUSED.get(stem, "no refusal") in refusal.message
        pytest.skip(f"libvirt here refuses it: {MAY_BE_REFUSED[stem]}")
    before = await driver.vm_facts(vm)
    assert before.state is VmState.SHUT_OFF
    wanted = [each for each in WANTED if before.boot_readings[each.tunable].value is not None]
    await driver.write_boot(vm, wanted)
    after = (await driver.vm_facts(vm)).boot_readings
    assert {each.tunable: after[each.tunable].value for each in wanted} == {
        each.tunable: each.value for each in wanted
    }
    await driver.write_boot(vm, undo(wanted, before.boot_readings))
    assert (await driver.vm_facts(vm)).boot_readings == before.boot_readings


@pytest.mark.parametrize("stem", ["kvm-args", "virt-install"])
async def test_it_starts_and_is_looked_at(
    stem: str, settings: LabSettings, driver: LibvirtDriver
) -> None:
    """With an image of its own for each disk, and without the site's networks."""
    text = FILES[stem].read_text()
    text = re.sub(r"<interface .*?</interface>", "", text, flags=re.S)
    text = re.sub("type='qcow2'", "type='raw'", text).replace(
        "<disk type='block'", "<disk type='file'"
    )
    for number, source in enumerate(re.findall(r"<source (?:file|dev)='[^']*'/>", text)):
        image = settings.folder / f"{stem}-{number}.raw"
        image.write_bytes(bytes(1 << 20))
        text = text.replace(source, f"<source file='{image}'/>")
    vm = define(settings, text)
    start = ("start", re.findall("<name>(.*)</name>", text)[0])
    try:
        lab.virsh(hosts(settings)[0].uri, *start)
    except LabError as refusal:
        assert "failed to set MSR 0x10a" in refusal.message
        assert WHOLE_CPU in text
        define(settings, text.replace(WHOLE_CPU, NEARLY_WHOLE_CPU))
        lab.virsh(hosts(settings)[0].uri, *start)
    facts = await driver.vm_facts(vm)
    assert facts.state is VmState.RUNNING
    assert facts.hardware is not None
    assert facts.hardware.disks
    await driver.write(vm, [Change("downtime_limit_ms", 700)])
    assert (await driver.read(vm, ["downtime_limit_ms"]))["downtime_limit_ms"].value == 700
