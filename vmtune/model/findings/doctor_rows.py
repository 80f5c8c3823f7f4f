"""Rows of the table of findings of host diagnostics.

None is a blocker: nothing was requested yet. A warning has a command that fixes it; an info
needs no action. Each finding's evidence has ``where``, the source that it was read from.
"""

from __future__ import annotations

from vmtune.model.findings.kinds import info, warning

DOCTOR_ROWS = (
    warning(
        "srcu_slow_boot",
        "with kernel {kernel} every change of a VM's memory map waits for a slow SRCU grace "
        "period: VMs with UEFI firmware took 163 s to boot instead of 8 s",
        "boot Linux 5.19 (the release) or newer: apt-get install linux-image-amd64, then reboot",
    ),
    info(
        "srcu_unknown",
        "the version {kernel} does not show whether the kernel has the change that made UEFI boots "
        "slow (282d8998e997) without its fixes, which a distribution may have backported: "
        "{reason}",
        "if boots seem slow, measure the boot of a UEFI VM with `vmtune bench boot`",
    ),
    warning(
        "srcu_updates_slow",
        "each SRCU grace period takes {grace_period_us} us: it sleeps where it should poll, and a "
        "boot of UEFI with ACPI waits {boot_s} s for its 9,000",
        "boot with srcutree.srcu_max_nodelay_phase=1000 srcutree.srcu_max_nodelay=1000 on the "
        "kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub), "
        "and run `vmtune doctor --srcu` again",
    ),
    warning(
        "srcu_updates_slow_kernel",
        "each SRCU grace period takes {grace_period_us} us, and a boot of UEFI with ACPI waits "
        "{boot_s} s for its 9,000; this kernel has no parameters to change that",
        "boot Linux 5.19 (the release) or newer: apt-get install linux-image-amd64, then reboot",
    ),
    warning(
        "map_count_low",
        "a process may have {value} memory maps, and each pooled coroutine of QEMU takes two: "
        "with busy disks and many queues QEMU aborts with `failed to allocate memory for stack`",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    warning(
        "maps_nearly_used_up",
        "QEMU {pid} has {maps} of its {most} memory maps; at the limit it aborts with `failed to "
        "allocate memory for stack`",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    info(
        "qemus_of_others",
        "vmtune runs as {user}, and {count} QEMUs of other users are closed to it: it counts none "
        "of their memory maps, and does not see whether they survive a ring that is emptied in "
        "part; nor may it raise limits of the host by itself",
        "run `vmtune doctor` as root on the host, which sees them; to let vmtune raise limits, "
        "enable vmtune-limits.path and set host_changes",
    ),
    info(
        "qemus_unconfined",
        "{by} is active on this host, and {count} QEMUs are not confined by it: QEMU {pid} has the "
        "label {label}",
        "if they should be, set security_driver in /etc/libvirt/qemu.conf, take "
        "<seclabel type='none'/> out of their XML, and restart them",
    ),
    warning(
        "host_optmem_low",
        "net.core.optmem_max is {value}; zero-copy with {channels} channels needs {least}, and "
        "the migration fails when it runs out",
        "run: sysctl -w net.core.optmem_max={wanted}",
    ),
    warning(
        "memlock_low",
        "QEMU {pid} may lock {limit_bytes} of its {memory_bytes}, and libvirt cannot raise that: "
        "zero-copy fails with `cannot limit locked memory` or `No buffer space available`",
        "run: prlimit --pid {pid} --memlock={wanted}",
    ),
    warning(
        "daemon_cannot_raise_memlock",
        "the libvirt daemon has no CAP_SYS_RESOURCE: it cannot give QEMU the locked memory that "
        "zero-copy needs, and aborts the migration",
        "add CAP_SYS_RESOURCE to CapabilityBoundingSet (systemctl edit libvirtd), and restart it",
    ),
    warning(
        "userfaultfd_denied",
        "vm.unprivileged_userfaultfd is 0 and /dev/userfaultfd is {device}: a QEMU that "
        "does not run as root cannot receive a post-copy migration",
        "run: sysctl -w vm.unprivileged_userfaultfd=1",
    ),
    warning(
        "kvm_missing",
        "/dev/kvm does not exist: VMs run under emulation, many times slower, and without "
        "dirty rings",
        "enable virtualization in the firmware, and load kvm_intel or kvm_amd with modprobe",
    ),
    warning(
        "kvm_unusable",
        "/dev/kvm exists but cannot be used: {reason}",
        "add {user} to the group kvm (usermod -aG kvm {user}), and log in again",
    ),
    warning(
        "dirty_ring_missing",
        "this kernel's KVM has no dirty ring (added in Linux 5.11): dirty_limit and the reaper "
        "cannot work",
        "boot Linux 5.11 or newer: apt-get install linux-image-amd64, then reboot",
    ),
    warning(
        "dirty_ring_unsafe",
        "this kernel empties a dirty ring only in part when a signal is pending, and QEMU aborts "
        "when it does (`kvm_dirty_ring_reap_locked: Assertion `ret == total' failed`): a VM with "
        "a dirty ring can die during a migration as soon as a ring fills",
        "boot a kernel older than 6.16, or leave dirty_ring_size_entries at 0 (bitmap tracking); "
        "where a ring is needed, use 65536 entries with reaper_policy, which empties rings before "
        "they fill",
    ),
    warning(
        "vm_dirty_ring_unsafe",
        "QEMU {pid} runs with a dirty ring of {entries} entries on a kernel that empties rings "
        "only in part when a signal is pending: it can abort during a migration as soon as a ring "
        "fills",
        "boot a kernel older than 6.16, or set dirty_ring_size_entries to 0 in the VM's profile, "
        "apply it and restart the VM; until then migrate it only with reaper_policy set",
    ),
    warning(
        "too_few_spare_cpus",
        "{profile} wants {channels} migration channels; of {cpus} CPUs the running VMs have "
        "{vcpus} vCPUs, which leaves {spare}: the channels would take CPU time from the guests",
        "run: vmtune profile set {profile} multifd_channels={wanted}",
    ),
    warning(
        "nic_without_scatter_gather",
        "{nic} has no scatter-gather: the kernel copies what zero-copy sends, and nothing is "
        "gained",
        "run: ethtool -K {nic} sg on",
    ),
    info(
        "nic_slow",
        "{nic} has {speed_mbit} Mbit/s, which one core saturates without multifd or zero-copy",
        "nothing to do; only a faster network makes migrations faster",
    ),
    warning(
        "qemu_missing",
        "no QEMU is installed: no VM can run here",
        "run: apt-get install qemu-system-x86",
    ),
    warning(
        "qemu_too_old",
        "QEMU {value} is older than 7.2, the oldest that vmtune was tested with",
        "install qemu-system-x86 from a newer suite, such as backports",
    ),
    warning(
        "libvirt_too_old",
        "libvirt {value} is older than 9.0, the oldest that vmtune was tested with",
        "install libvirt-daemon-system from a newer suite, such as backports",
    ),
    info(
        "libvirt_without_compression",
        "libvirt {value} cannot compress parallel migrations; libvirt 9.4 and newer can",
        "nothing to do unless a profile sets multifd_compression",
    ),
    info(
        "qemu_postcopy_alone",
        "QEMU {value} refuses post-copy together with multifd; QEMU 10.1 and newer accept it",
        "nothing to do unless a profile sets both",
    ),
    warning(
        "program_missing",
        "{program} is not installed: {needed_for}",
        "run: apt-get install {package}",
    ),
)
