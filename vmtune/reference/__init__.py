"""Published measurements, to compare own ones with: tables as data, and pure functions on them.

:mod:`~vmtune.reference.loading` reads the tables of ``data/``, :mod:`~vmtune.reference.changes`
recomputes their ratios and changes, and :mod:`~vmtune.reference.matching` matches published figures
with own ones, whose conditions
:mod:`~vmtune.reference.own` puts into the
same words. The files of ``scenarios/`` repeat each source's matrix as far as one machine allows.
"""
