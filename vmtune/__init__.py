"""vmtune: tuning profiles for libvirt and QEMU virtual machines, applied and proven."""

__version__ = "0.1.0"
