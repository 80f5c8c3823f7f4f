"""What vmtune does while a VM migrates.

Policies, which are pure: :mod:`~vmtune.engine.reaper.settings` has the dirty-ring reaper's settings
and what a round of it observes, :mod:`~vmtune.engine.reaper.policies` begins the policy that
decides when the next round is due. Which convergence steps (:mod:`vmtune.model.migration.steps`)
are due says :mod:`~vmtune.engine.steps.convergence`.

Loops, which know no driver but what they need of one: :mod:`~vmtune.engine.reaper.loop` and
:mod:`~vmtune.engine.steps.executor`, run together by :mod:`~vmtune.engine.controllers`.
"""
