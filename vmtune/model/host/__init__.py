"""Facts of hosts, VMs and QEMUs, as they were probed."""
