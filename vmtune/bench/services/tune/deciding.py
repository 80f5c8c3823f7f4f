"""What a study does next, computed from its records where heavy work is done."""

from __future__ import annotations

from uuid import UUID

from vmtune.bench.model.tune.steps import Step
from vmtune.bench.services.tune.reading import read_study
from vmtune.storage import Store


def decide(store: Store, id: UUID) -> Step:
    """The next step of a study. Blocks for up to some seconds."""
    from vmtune.bench.model.tune.policy import next_step  # noqa: PLC0415 - loads the search

    study = read_study(store, store.studies.get(id))
    return next_step(study.spec, study.trials, study.used)
