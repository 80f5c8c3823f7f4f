"""Rows of the table of findings for what the doctor finds on a host.

None is a blocker: nothing was asked for yet. What warns has a command that mends it; an info
asks for nothing. Each finding's evidence has ``where``, the place that it was read from.
"""

from __future__ import annotations

from vmtune.model.findings.kinds import info, warning

DOCTOR_ROWS = (
    warning(
        "srcu_slow_boot",
        "kernel {kernel} makes every change of a VM's memory map wait for a slow SRCU grace "
        "period: VMs with UEFI firmware were seen to boot in 163 s instead of 8 s",
        "boot Linux 5.19 (the release) or newer: apt-get install linux-image-amd64, then reboot",
    ),
    info(
        "srcu_unknown",
        "nobody can tell by its version {kernel} whether it has the change that made UEFI boots "
        "slow (282d8998e997) without its mends, which a distribution may have taken over: "
        "{reason}",
        "compare the boot of a UEFI VM with `vmtune bench boot` where boots seem slow",
    ),
    warning(
        "map_count_low",
        "a process may have {value} memory maps, and each pooled coroutine of QEMU takes two: "
        "busy disks with many queues end QEMU with `failed to allocate memory for stack`",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    warning(
        "maps_nearly_used_up",
        "QEMU {pid} has {maps} of its {most} memory maps; at the limit it ends with `failed to "
        "allocate memory for stack`",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    warning(
        "host_optmem_low",
        "net.core.optmem_max is {value}; zero-copy with {channels} channels needs {least} and "
        "fails the migration when it runs out",
        "run: sysctl -w net.core.optmem_max={wanted}",
    ),
    warning(
        "memlock_low",
        "QEMU {pid} may lock {limit_bytes} of its {memory_bytes}, and nobody may raise that: "
        "zero-copy fails with `cannot limit locked memory` or `No buffer space available`",
        "run: prlimit --pid {pid} --memlock={wanted}",
    ),
    warning(
        "daemon_cannot_raise_memlock",
        "libvirt's daemon has no CAP_SYS_RESOURCE: it cannot give QEMU the locked memory that "
        "zero-copy needs, and aborts the migration",
        "run: systemctl edit libvirtd, and add CAP_SYS_RESOURCE to CapabilityBoundingSet",
    ),
    warning(
        "userfaultfd_denied",
        "vm.unprivileged_userfaultfd is 0 and /dev/userfaultfd is {device}: a QEMU that is not "
        "root cannot receive a post-copy migration",
        "run: sysctl -w vm.unprivileged_userfaultfd=1",
    ),
    warning(
        "kvm_missing",
        "there is no /dev/kvm: VMs run by emulation, many times slower, and without dirty rings",
        "run: modprobe kvm_intel || modprobe kvm_amd; switch virtualization on in the firmware",
    ),
    warning(
        "kvm_unusable",
        "/dev/kvm is there but cannot be used: {reason}",
        "run: usermod -aG kvm {user}, then log in again",
    ),
    warning(
        "dirty_ring_missing",
        "this kernel's KVM has no dirty ring (added in Linux 5.11): dirty_limit and the reaper "
        "cannot work",
        "boot Linux 5.11 or newer: apt-get install linux-image-amd64, then reboot",
    ),
    warning(
        "too_few_spare_cpus",
        "{profile} wants {channels} migration channels; of {cpus} CPUs the running VMs have "
        "{vcpus} vCPUs, which leaves {spare}: the channels would take time from the guests",
        "run: vmtune profile set {profile} multifd_channels={wanted}",
    ),
    warning(
        "nic_without_scatter_gather",
        "{nic} does not gather what it sends from several places: the kernel then copies what "
        "zero-copy hands it, and nothing is gained",
        "run: ethtool -K {nic} sg on",
    ),
    info(
        "nic_slow",
        "{nic} carries {speed_mbit} Mbit/s, which one core fills without multifd or zero-copy",
        "nothing to do; a faster network is what would make migrations faster",
    ),
    warning(
        "qemu_missing",
        "no QEMU is installed: no VM can run here",
        "run: apt-get install qemu-system-x86",
    ),
    warning(
        "qemu_too_old",
        "QEMU {value} is older than 7.2, the oldest that vmtune was tested with",
        "run: apt-get install qemu-system-x86 from a newer suite, such as backports",
    ),
    warning(
        "libvirt_too_old",
        "libvirt {value} is older than 9.0, the oldest that vmtune was tested with",
        "run: apt-get install libvirt-daemon-system from a newer suite, such as backports",
    ),
    info(
        "libvirt_without_compression",
        "libvirt {value} cannot ask for compressed parallel migrations; 9.4 was the first",
        "nothing to do unless a profile sets multifd_compression",
    ),
    info(
        "qemu_postcopy_alone",
        "QEMU {value} refuses post-copy together with multifd; 10.1 lifts that",
        "nothing to do unless a profile sets both",
    ),
    warning(
        "program_missing",
        "{program} is not installed: {needed_for}",
        "run: apt-get install {package}",
    ),
)
