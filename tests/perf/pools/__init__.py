"""QEMU's coroutine pools, as they are, by vmtune, and in the patched QEMU."""
