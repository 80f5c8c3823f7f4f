"""Two libvirt hosts on one machine, and a VM that migrates between them.

What runs here is real: two libvirtd, QEMU, and a guest that dirties memory.
Only the machines are namespaces. Needs root.
"""

from vmtune.lab.lab import HostStatus, LabStatus, down, inside, status, up
from vmtune.lab.settings import DiskSettings, LabSettings, VmSettings
from vmtune.lab.vms import LabVm, VmStatus, define_vm, virsh

__all__ = [
    "DiskSettings",
    "HostStatus",
    "LabSettings",
    "LabStatus",
    "LabVm",
    "VmSettings",
    "VmStatus",
    "define_vm",
    "down",
    "inside",
    "status",
    "up",
    "virsh",
]
