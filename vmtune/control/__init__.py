"""What vmtune does while a VM migrates.

Policies, which are pure: :mod:`~vmtune.control.reaping` has the dirty-ring reaper's settings and
what a round of it observes, :mod:`~vmtune.control.policies` begins the policy that decides when
the next round is due, and :mod:`~vmtune.control.simulation` tries policies on the traces of
:mod:`~vmtune.control.traces`. Which convergence steps (:mod:`vmtune.domain.steps`) are due says
:mod:`~vmtune.control.convergence`.

Loops, which know no driver but what they need of one: :mod:`~vmtune.control.reaper` and
:mod:`~vmtune.control.conductor`, run together by :mod:`~vmtune.control.controllers`.
"""
