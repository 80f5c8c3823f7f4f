"""Dirty rings: what they cost guests, and reapers of vmtune and inside QEMU."""
