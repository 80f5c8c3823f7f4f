"""The only code that talks to QEMU, libvirt and /proc: one Protocol, several drivers."""
