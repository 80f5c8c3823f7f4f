"""QEMU over any monitor: the same for a QMP socket, for libvirt and for a fake."""
