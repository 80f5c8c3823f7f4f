"""The block benchmark: fio against a QEMU's NBD export, or inside a guest."""
