"""What a study does next, and what its trials say, computed from its records where heavy work is
done."""

from __future__ import annotations

from uuid import UUID

from vmtune.bench.model.tune.analysis import Analysis, analyse
from vmtune.bench.model.tune.steps import Step
from vmtune.bench.services.tune.reading import read_study
from vmtune.storage import Store


def decide(store: Store, id: UUID) -> Step:
    """The next step of a study. Blocks for up to some seconds."""
    from vmtune.bench.model.tune.policy import next_step  # noqa: PLC0415 - loads the search

    study = read_study(store, store.studies.get(id))
    return next_step(study.spec, study.trials, study.used)


def analysis(store: Store, id: UUID) -> Analysis:
    """What a study's trials say. Blocks for up to some seconds."""
    study = read_study(store, store.studies.get(id))
    return analyse(study.spec, study.trials)
