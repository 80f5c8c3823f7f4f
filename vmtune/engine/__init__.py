"""One migration, from its plan to its restored hosts: :mod:`~vmtune.engine.session`.

Whoever starts it, and whoever asks for it, it goes through the session, which watches
(:mod:`~vmtune.engine.watch`), reads back (:mod:`~vmtune.engine.read_back`), sets and restores
values (:mod:`~vmtune.engine.setting`), finds out how it ended (:mod:`~vmtune.engine.end_state`) and
finalizes (:mod:`~vmtune.engine.finalize`). What it needs around it is in
:mod:`~vmtune.engine.notes`.

Beside it run the dirty-ring reaper (:mod:`~vmtune.engine.reaper.loop`) and the convergence steps
(:mod:`~vmtune.engine.steps.executor`), both begun by :mod:`~vmtune.engine.controllers`; their
policies are pure.
"""
