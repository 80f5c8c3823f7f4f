"""Migrations of VMs that libvirt manages."""
