"""Findings of what a VM needs of its destination besides settings."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker, warning

HARDWARE_ROWS = (
    warning(
        "vfio_device",
        "the guest has devices of the host by VFIO ({devices}): they migrate only where their "
        "driver can, to a device of the same kind, and add to the downtime",
        "detach them before and attach them after, or have the guest fail over to a virtio card",
    ),
    warning(
        "virtiofs_device",
        "the guest has folders of the host by virtiofs ({folders}): libvirt migrates it only where "
        "their virtiofsd can migrate, and the same folders have to be on the destination",
        "unmount and detach them before, and attach them after, or share the folders by a network "
        "file system",
    ),
    blocker(
        "tpm_passthrough",
        "the guest's TPM is the host's own, whose state cannot leave it",
        "use a TPM with the backend emulator",
    ),
    blocker(
        "tpm_not_offered",
        "the destination cannot give the guest its TPM: its libvirt has no backend {backend}",
        "install swtpm on the destination, then restart its libvirt",
    ),
    blocker(
        "hugepages_missing",
        "the guest's memory is {needed_bytes} in huge pages of {page_bytes}; the destination has "
        "{free_bytes} of them free",
        "reserve more on the destination (vm.nr_hugepages), or choose another one",
    ),
    warning(
        "pinned_cpus_missing",
        "threads of the VM are pinned to CPUs that the destination seems to lack ({cpus}): it has "
        "{has} CPUs, and libvirt may be unable to start the VM there",
        "pin them to CPUs that both hosts have (vcpu_cpus, emulator_cpus, iothread_cpus), or "
        "choose another destination",
    ),
    blocker(
        "machine_not_offered",
        "the destination's QEMU has no machine type {machine}",
        "use a QEMU there that has it, or choose another destination",
    ),
    blocker(
        "virtio_queues_too_long",
        "QEMU {qemu} gives virtio queues {entries} entries, whatever the devices are configured to "
        "have ({devices}); QEMU {there} on the destination refuses longer queues than that",
        "shut the VM off and start it on the destination, or choose one whose QEMU is older than "
        "11.1",
    ),
    blocker(
        "cpu_not_offered",
        "the destination cannot give the guest its CPU: a feature of it is missing there",
        "choose a destination with that CPU; for later, a CPU model that all hosts have "
        "(virsh hypervisor-cpu-baseline)",
    ),
    warning(
        "cpu_host_passthrough",
        "the guest has the source's CPU as it is (host-passthrough): on another CPU, microcode or "
        "kernel it may crash",
        "migrate between equal hosts only; for later, a CPU model that all hosts have",
    ),
    warning(
        "cpu_host_model",
        "its CPU is a host-model: at its next start on the destination it becomes that host's, and "
        "the VM may then not migrate back",
        "use a CPU model that all hosts have (virsh hypervisor-cpu-baseline)",
    ),
    blocker(
        "has_snapshots",
        "libvirt migrates no VM with snapshots, and keeps {count} of this one",
        "delete them, or with --metadata only what libvirt knows of them (virsh snapshot-delete)",
    ),
)
