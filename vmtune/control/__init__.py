"""What vmtune does while a VM migrates, as pure policies: no I/O, no clock.

The dirty-ring reaper: :mod:`~vmtune.control.reaping` has its settings and what a round
observes, :mod:`~vmtune.control.policies` begins the policy that decides when the next round is
due, and :mod:`~vmtune.control.simulation` tries policies on the traces of
:mod:`~vmtune.control.traces`. Which convergence
steps (:mod:`vmtune.domain.steps`) are due says :mod:`~vmtune.control.convergence`.
"""
