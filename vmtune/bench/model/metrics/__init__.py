"""The tables of metrics: each figure that a run is reduced to, once."""
