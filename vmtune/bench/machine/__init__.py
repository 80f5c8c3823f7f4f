"""The machine that measures: its environment, its load, its CPU times."""
