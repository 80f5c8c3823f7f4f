"""QEMUs without libvirt: each is driven by its QMP socket."""
