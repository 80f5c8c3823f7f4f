"""Reading and editing a domain's XML."""

from __future__ import annotations

import re
from xml.etree.ElementTree import canonicalize

import pytest

from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.domain_xml import boot_readings, read_domain
from vmtune.hypervisor.libvirt.domain_xml_edit import (
    edit_arriving_xml,
    edit_boot_xml,
    edit_destination_xml,
)
from vmtune.model.host.facts import Reading
from vmtune.model.migration.arriving import GIVEN_ON_ARRIVAL
from vmtune.model.plan.changes import Change, undo
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route, Side, Value

DOMAIN = """\
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>guest &amp; co</name>
  <metadata>
    <nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1"><nova:x/></nova:instance>
  </metadata>
  <memory unit='MiB'>512</memory>
  <vcpu placement='static' current='2'>4</vcpu>
  <iothreads>3</iothreads>
  <iothreadids><iothread id='2'/></iothreadids>
  <os><type arch='x86_64' machine='pc-i440fx-10.0'>hvm</type></os>
  <features><acpi/></features>
  <!-- kept -->
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' queues='4'/>
      <target dev='vda' bus='virtio'/>
      <alias name='virtio-disk0'/>
    </disk>
    <disk type='file' device='disk'>
      <target dev='vdb' bus='virtio'/>
      <alias name='ua-second'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>
    <controller type='scsi' index='1' model='virtio-scsi'/>
    <controller type='usb' index='0' model='qemu-xhci'/>
    <interface type='bridge'>
      <mac address='52:54:00:00:00:01'/>
      <model type='virtio'/>
      <driver name='vhost'/>
    </interface>
    <interface type='user'><mac address='52:54:00:00:00:02'/><model type='virtio'/></interface>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-global'/>
    <qemu:arg value='ICH9-LPC.disable_s3=1'/>
  </qemu:commandline>
</domain>"""


def same(one: str, other: str) -> bool:
    """Equal but for quotes, the order of attributes, and white space between tags."""
    plain = [canonicalize(text, with_comments=True, strip_text=True) for text in (one, other)]
    return plain[0] == plain[1]


class TestReading:
    def test_what_a_domain_says(self) -> None:
        domain = read_domain(DOMAIN)
        assert domain.kvm
        assert domain.machine == "pc-i440fx-10.0"
        assert domain.memory_bytes == 512 << 20
        assert domain.vcpus == 2
        assert domain.iothreads == ("iothread1", "iothread2", "iothread3")
        assert not domain.main_loop
        assert [(d.target, d.alias, d.queues) for d in domain.disks] == [
            ("vda", "virtio-disk0", 4),
            ("vdb", "ua-second", None),
        ]
        assert domain.dirty_ring_size_entries == 0

    def test_a_bare_domain(self) -> None:
        domain = read_domain("<domain type='qemu'><memory>1024</memory></domain>")
        assert (domain.kvm, domain.memory_bytes, domain.vcpus) == (False, 1 << 20, 1)
        assert domain.iothreads == domain.disks == ()

    @pytest.mark.parametrize(("state", "size"), [("on", 4096), ("off", 0)])
    def test_a_dirty_ring_counts_when_it_is_on(self, state: str, size: int) -> None:
        ring = f"<kvm><dirty-ring state='{state}' size='4096'/></kvm>"
        domain = read_domain(DOMAIN.replace("<acpi/>", ring))
        assert domain.dirty_ring_size_entries == size

    def test_boot_readings_of_a_vm_that_is_off(self) -> None:
        readings = boot_readings(read_domain(DOMAIN))
        assert readings["dirty_ring_size_entries"] == Reading(0)
        assert readings["virtio_blk_queues"].parts == {"vda": 4}
        assert readings["virtio_blk_queues"].why_unknown
        assert readings["virtio_blk_queue_size"].value is None

    def test_what_is_left_to_qemu_is_what_qemu_chose(self) -> None:
        live = read_domain(DOMAIN)
        running = {
            "virtio_blk_queues": Reading(None, {"virtio-disk0": 4, "ua-second": 2}),
            "virtio_blk_queue_size": Reading(256, {"virtio-disk0": 256, "ua-second": 256}),
        }
        readings = boot_readings(read_domain(DOMAIN), live, running)
        assert readings["virtio_blk_queues"].parts == {"vda": 4, "vdb": 2}
        assert readings["virtio_blk_queue_size"] == Reading(256, {"vda": 256, "vdb": 256})

    def test_what_the_running_vm_was_told_says_nothing_of_qemus_choice(self) -> None:
        boot = read_domain(DOMAIN.replace(" queues='4'", ""))
        running = {"virtio_blk_queues": Reading(None, {"virtio-disk0": 4, "ua-second": 2})}
        readings = boot_readings(boot, read_domain(DOMAIN), running)
        assert readings["virtio_blk_queues"].parts == {"vdb": 2}

    def test_the_running_vms_settings_are_read_from_its_own_xml(self) -> None:
        live = read_domain(
            edit_boot_xml(DOMAIN, [Change("vcpu_cpus", "3"), Change("disk_io", "native")])
        )
        assert live.settings["vcpu_cpus"].value == "3"
        assert live.settings["disk_io"].parts == {"vda": "native", "vdb": "native"}

    def test_every_boot_tunable_is_read(self) -> None:
        boot = {name for name, t in BUILT_IN.items() if t.route is Route.BOOT}
        assert boot_readings(read_domain(DOMAIN)).keys() == boot


SET = {
    "virtio_net_queues": 8,
    "disk_cache": "none",
    "disk_io": "native",
    "disk_discard": "unmap",
    "huge_pages": "1G",
    "vcpu_cpus": "2/3/4-5/0",
    "emulator_cpus": "0-1",
    "iothread_cpus": "6/7/8",
    "numa_nodes": "0-1",
}
"""A value for each boot tunable that 1024 is none of."""
KEPT = ("<!-- kept -->", "nova:instance", "ICH9-LPC.disable_s3=1", "guest &amp; co")


class TestEditingTheConfiguration:
    def test_nothing_to_change_changes_nothing(self) -> None:
        assert same(edit_boot_xml(DOMAIN, []), DOMAIN)

    @pytest.mark.parametrize(
        "name", sorted({t.name for t in BUILT_IN.on(Route.BOOT)} - {"numa_mode"})
    )
    def test_every_boot_tunable_is_read_back_as_it_was_set(self, name: str) -> None:
        before = boot_readings(read_domain(DOMAIN))
        change = Change(name, SET.get(name, 1024 if name != "virtio_scsi_queues" else 4))
        edited = edit_boot_xml(DOMAIN, [change])
        readings = boot_readings(read_domain(edited))
        assert readings[name].value == change.value
        assert {n for n in readings if readings[n] != before[n]} <= {name, "numa_mode"}
        assert all(text in edited for text in KEPT)
        if before[name].value is not None:
            back = edit_boot_xml(edited, undo([change], before))
            assert boot_readings(read_domain(back)) == before

    def test_what_is_left_to_qemu_again_leaves_nothing(self) -> None:
        names = ("disk_cache", "disk_io", "huge_pages", "vcpu_cpus", "emulator_cpus",
                 "iothread_cpus", "numa_nodes")  # fmt: skip
        changes = [Change(name, SET[name]) for name in names]
        edited = edit_boot_xml(DOMAIN, changes)
        assert edited.count("<cputune>") == edited.count("<memoryBacking>") == 1
        assert edited.count("vcpupin") == 4
        back = [Change(c.tunable, BUILT_IN[c.tunable].default or "") for c in changes]
        assert same(edit_boot_xml(edited, back), DOMAIN)

    def test_disks_that_are_no_whole_disks_and_cards_without_queues_are_left_alone(self) -> None:
        edited = edit_boot_xml(
            DOMAIN, [Change("disk_cache", "none"), Change("virtio_net_queues", 4)]
        )
        assert edited.count('cache="none"') == 2
        assert edited.count('queues="4"') == 2  # and the first disk's, as it was
        readings = boot_readings(read_domain(edited))
        assert readings["virtio_net_queues"].parts == {"52:54:00:00:00:01": 4}
        assert readings["virtio_scsi_queues"].parts == {"scsi1": 0}

    def test_numa_mode_needs_nodes(self) -> None:
        mode = Change("numa_mode", "interleave")
        with pytest.raises(CommandRefused) as refused:
            edit_boot_xml(DOMAIN, [mode])
        assert refused.value.problems[0].field == "values.numa_mode"
        edited = edit_boot_xml(DOMAIN, [mode, Change("numa_nodes", "1")])
        readings = boot_readings(read_domain(edited))
        assert (readings["numa_mode"].value, readings["numa_nodes"].value) == ("interleave", "1")

    @pytest.mark.parametrize(
        ("name", "value", "code"),
        [
            ("vcpu_cpus", "1/2", "wrong_count"),
            ("iothread_cpus", "1/2/3/4", "wrong_count"),
            ("vcpu_cpus", "all", "bound_as_a_whole"),
            ("emulator_cpus", "all", "bound_as_a_whole"),
        ],
    )
    def test_pins_that_have_no_place_are_refused(self, name: str, value: str, code: str) -> None:
        bound = DOMAIN.replace("placement='static'", "placement='static' cpuset='0-3'")
        readings = boot_readings(read_domain(bound))
        assert readings["vcpu_cpus"].value == readings["iothread_cpus"].value == "0-3"
        with pytest.raises(CommandRefused) as refused:
            edit_boot_xml(bound, [Change(name, value)])
        assert refused.value.problems[0].code == code

    @pytest.mark.parametrize(
        ("xml", "value"),
        [
            ("<hugepages/>", "default"),
            ("<hugepages><page size='2' unit='M'/></hugepages>", "2M"),
            ("<hugepages><page size='16' unit='G'/></hugepages>", None),
            ("<hugepages><page size='1' unit='G' nodeset='0'/></hugepages>", None),
            ("<nosharepages/>", "none"),
        ],
    )
    def test_huge_pages_as_sites_have_them(self, xml: str, value: str | None) -> None:
        domain = DOMAIN.replace("<os>", f"<memoryBacking>{xml}</memoryBacking><os>")
        reading = boot_readings(read_domain(domain))["huge_pages"]
        assert reading.value == value
        assert (value is None) is bool(reading.why_unknown)
        edited = edit_boot_xml(domain, [Change("huge_pages", "none")])
        assert "hugepages" not in edited
        assert ("nosharepages" in edited) is ("nosharepages" in xml)

    def test_numa_nodes_that_numad_chooses_are_not_known(self) -> None:
        auto = DOMAIN.replace(
            "<os>", "<numatune><memory mode='preferred' placement='auto'/></numatune><os>"
        )
        readings = boot_readings(read_domain(auto))
        assert "numad" in readings["numa_nodes"].why_unknown
        assert readings["numa_mode"].value == "preferred"
        edited = edit_boot_xml(auto, [Change("numa_nodes", "0")])
        assert 'placement="auto"' not in edited
        assert boot_readings(read_domain(edited))["numa_nodes"].value == "0"

    def test_a_ring_comes_and_goes(self) -> None:
        bare = DOMAIN.replace("<features><acpi/></features>", "")
        for before in (DOMAIN, bare):
            edited = edit_boot_xml(before, [Change("dirty_ring_size_entries", 8192)])
            assert '<dirty-ring state="on" size="8192"/>' in edited
            edited = edit_boot_xml(edited, [Change("dirty_ring_size_entries", 2048)])
            assert edited.count("dirty-ring") == 1
            assert same(edit_boot_xml(edited, [Change("dirty_ring_size_entries", 0)]), before)

    def test_without_the_ring_other_kvm_features_stay(self) -> None:
        others = "<kvm><hidden state='on'/><dirty-ring state='on' size='1024'/></kvm>"
        edited = edit_boot_xml(
            DOMAIN.replace("<acpi/>", others), [Change("dirty_ring_size_entries", 0)]
        )
        assert same(edited, DOMAIN.replace("<acpi/>", "<kvm><hidden state='on'/></kvm>"))

    def test_one_disk_alone(self) -> None:
        edited = edit_boot_xml(DOMAIN, [Change("virtio_blk_queue_size", 64, "vdb")])
        assert [d.queue_size for d in read_domain(edited).disks] == [None, 64]
        assert edited.count("queue_size") == 1

    @pytest.mark.parametrize("owner", ["vdz", "sda"])
    def test_a_disk_that_is_not_there_is_refused(self, owner: str) -> None:
        with pytest.raises(CommandRefused) as refused:
            edit_boot_xml(DOMAIN, [Change("virtio_blk_queues", 2, owner)])
        assert refused.value.problems[0].field == "values.virtio_blk_queues"
        assert owner in refused.value.message

    def test_other_routes_are_refused(self) -> None:
        with pytest.raises(CommandRefused) as refused:
            edit_boot_xml(DOMAIN, [Change("multifd", True)])
        assert refused.value.problems[0].field == "values.multifd"


def arguments(xml: str) -> list[str]:
    return re.findall(r"<(?:\w+:)?arg value=[\"']([^\"']*)", xml)


class TestEditingForTheDestination:
    @pytest.mark.parametrize("name", [n for n, t in BUILT_IN.items() if t.side is Side.DESTINATION])
    def test_every_destination_tunable_becomes_an_argument(self, name: str) -> None:
        edited = edit_destination_xml(DOMAIN, DOMAIN, {name: 7})
        assert edited is not None
        row = BUILT_IN[name]
        assert row.qmp is not None
        # QEMU 7.2's object calls this one otherwise (tests/contract/test_arriving_qemu.py).
        known = row.qmp.name.replace("decompress", "x-decompress")
        assert arguments(edited) == [
            *("-global", "ICH9-LPC.disable_s3=1"),
            *("-global", f"migration.{known}=7"),
        ]

    def test_without_a_command_line_there_is_one_made(self) -> None:
        bare = re.sub(r"\s*<qemu:commandline>.*</qemu:commandline>", "", DOMAIN, flags=re.DOTALL)
        bare = bare.replace(" xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'", "")
        edited = edit_destination_xml(bare, None, {"announce_rounds": 7})
        assert edited is not None
        assert (
            '<qemu:commandline xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">' in edited
        )
        back = edit_destination_xml(edited, bare, {})
        assert back is not None
        assert same(back, bare)

    def test_nothing_to_change_needs_no_xml(self) -> None:
        assert edit_destination_xml(DOMAIN, DOMAIN, {}) is None

    def test_an_earlier_migrations_values_are_not_passed_on(self) -> None:
        live = edit_destination_xml(DOMAIN, DOMAIN, {"announce_rounds": 7, "announce_max_ms": 9})
        assert live is not None
        for persistent in (DOMAIN, None):
            edited = edit_destination_xml(live, persistent, {"announce_rounds": 8})
            assert edited is not None
            assert arguments(edited)[2:] == ["-global", "migration.announce-rounds=8"]

    def test_the_operators_own_arguments_stay_unless_another_value_is_asked_for(self) -> None:
        own = edit_destination_xml(DOMAIN, DOMAIN, {"announce_rounds": 9})
        assert own is not None
        assert edit_destination_xml(own, own, {}) is None
        edited = edit_destination_xml(own, own, {"announce_rounds": 3})
        assert edited is not None
        assert arguments(edited)[2:] == ["-global", "migration.announce-rounds=3"]

    def test_what_is_no_argument_is_refused_by_name(self) -> None:
        with pytest.raises(CommandRefused) as refused:
            edit_destination_xml(DOMAIN, None, {"multifd": True})
        assert refused.value.problems[0].field == "values.multifd"


class TestEditingForAnArrival:
    def test_all_that_can_be_given_is_beside_what_was_there(self) -> None:
        values: dict[str, Value] = dict.fromkeys(GIVEN_ON_ARRIVAL, 7)
        edited = edit_arriving_xml(DOMAIN, values)
        assert edited is not None
        words = [f"{name}=7" for name in GIVEN_ON_ARRIVAL.values()]
        pairs = [word for text in words for word in ("-global", text)]
        assert arguments(edited) == ["-global", "ICH9-LPC.disable_s3=1", *pairs]
        bare = edit_destination_xml(edited, DOMAIN, {})  # vmtune's own next migration
        assert bare is not None
        assert same(bare, DOMAIN)

    def test_what_is_there_already_needs_no_change(self) -> None:
        """Each change taints the guest."""
        edited = edit_arriving_xml(DOMAIN, {"announce_rounds": 7, "announce_step_ms": 8})
        assert edited is not None
        assert edit_arriving_xml(edited, {"announce_step_ms": 8, "announce_rounds": 7}) is None
        assert edit_arriving_xml(edited, {"announce_rounds": 7}) is None
        assert edit_arriving_xml(edited, {}) is None

    def test_another_value_is_replaced_wherever_it_stands_and_others_stay(self) -> None:
        twice = DOMAIN.replace(
            "<qemu:commandline>",
            "<qemu:commandline><qemu:arg value='-global'/>"
            "<qemu:arg value='migration.announce-rounds=3'/><qemu:arg value='-global'/>"
            "<qemu:arg value='migration.announce-max=3'/><qemu:arg value='-global'/>"
            "<qemu:arg value='migration.announce-rounds=7'/>",
        )
        edited = edit_arriving_xml(twice, {"announce_rounds": 7})
        assert edited is not None
        assert [a for a in arguments(edited) if a != "-global"] == [
            "migration.announce-max=3",
            "ICH9-LPC.disable_s3=1",
            "migration.announce-rounds=7",
        ]
