"""The demo: a real VM migrates between two real libvirt hosts, untuned and tuned."""
