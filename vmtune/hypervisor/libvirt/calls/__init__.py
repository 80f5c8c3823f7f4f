"""The calls of libvirt that vmtune makes, typed. All of them block."""
