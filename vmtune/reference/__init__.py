"""Published measurements, to hold own ones against: tables as data, and pure functions on them.

:mod:`~vmtune.reference.loading` reads the tables of ``data/``, :mod:`~vmtune.reference.changes`
computes their ratios and changes anew, and :mod:`~vmtune.reference.matching` says which published
figure stands beside which own one, whose conditions :mod:`~vmtune.reference.own` puts into the
same words. The files of ``scenarios/`` repeat each source's matrix as far as one machine allows.
"""
