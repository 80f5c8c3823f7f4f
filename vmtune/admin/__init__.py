"""What ``vmtune`` does without a service: its databases, and the doctor on this machine."""
