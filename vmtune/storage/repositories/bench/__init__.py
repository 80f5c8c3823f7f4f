"""Records of benchmarks: runs, campaigns, studies and trends."""
