"""The rules of the preflight: what stands against a profile on a VM and its hosts."""
