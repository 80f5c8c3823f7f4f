"""Hosts that libvirt manages."""
