"""Stand-ins for what tests cannot provoke in real QEMUs. Not part of the wheel."""
