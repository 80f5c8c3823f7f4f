"""The jobs by which libvirt copies disks."""

from __future__ import annotations

from vmtune.hypervisor.libvirt.disks import copy_jobs
from vmtune.hypervisor.libvirt.domain_xml import parse

XML = """<domain><devices>
<disk type='file'><target dev='vda' bus='virtio'/><alias name='virtio-disk0'/></disk>
<disk type='file'><target dev='sda' bus='scsi'/><alias name='scsi0-0-0-0'/></disk>
<disk type='file'><target dev='vdb' bus='virtio'/></disk>
</devices></domain>"""


def test_each_has_the_name_of_its_disks_alias() -> None:
    assert copy_jobs(parse(XML), ["vda", "vdb"]) == ["drive-virtio-disk0"]
    assert copy_jobs(parse(XML), ["sda", "vda"]) == ["drive-virtio-disk0", "drive-scsi0-0-0-0"]
