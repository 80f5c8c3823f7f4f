"""Commands about hosts and VMs."""
