"""The benchmark of updates of a VM's memory map: what KVM's SRCU grace periods cost here."""
