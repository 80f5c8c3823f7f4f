"""The boot benchmark: from QEMU's process to the guest's user space."""
