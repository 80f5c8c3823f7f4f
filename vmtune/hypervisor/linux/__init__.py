"""This machine, as the kernel shows it: /proc, /sys, sysctls, processes."""
