"""Tunable packs: TOML files that add tunables of a patched QEMU, without code."""
