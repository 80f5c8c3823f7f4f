"""The draft of a profile from a study's winner. It is assigned to nothing."""

from __future__ import annotations

from vmtune.bench.model.tune.result import StudyResult
from vmtune.bench.services.tune.reading import Study
from vmtune.errors import DuplicateName
from vmtune.services.tuning.profiles import ProfileService

_NAMED = 50
_DIGITS = 8


def draft_name(study: Study) -> str:
    """The same for the same study, so that a repeat finds it."""
    return f"{study.spec.name[:_NAMED].rstrip('._-')}-{str(study.kept.id)[:_DIGITS]}"


def evidence_note(study: Study, result: StudyResult, environments: tuple[str, ...]) -> str:
    """What a draft rests on, in sentences."""
    lines = [
        f"Draft by the study {study.spec.name} ({study.kept.id}), trial {result.trial}.",
        f"Objective: {study.spec.objective}.",
        f"Confirmed by the campaign {study.kept.campaign}.",
    ]
    for one in result.evidence:
        if one.trial != result.trial:
            continue
        figures = ""
        if one.estimate is not None and one.ratio:
            figures = f", {one.estimate:.3f} times"
            if one.low is not None and one.high is not None:
                figures += f" (from {one.low:.3f} to {one.high:.3f})"
        lines.append(f"{one.metric} against {one.baseline}: {one.verdict}{figures}.")
    lines.append(f"Environment: {', '.join(environments) or 'unknown'}.")
    return " ".join(lines)


async def draft(
    profiles: ProfileService, study: Study, result: StudyResult, environments: tuple[str, ...]
) -> tuple[str, int]:
    """Make the draft, once: its name and revision."""
    name = draft_name(study)
    try:
        made = await profiles.create(
            name,
            dict(result.settings),
            f"Draft of the study {study.spec.name}. Assigning it is an operator's act.",
            evidence_note(study, result, environments),
        )
    except DuplicateName:  # made before the service was killed
        made = await profiles.get(name)
    return made.name, made.current.number
