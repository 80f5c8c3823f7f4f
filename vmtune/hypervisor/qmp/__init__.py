"""QEMUs without libvirt: each is managed by its QMP socket."""
