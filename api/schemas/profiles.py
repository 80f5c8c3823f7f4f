"""Profiles and their immutable revisions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field, StrictInt, StrictStr

from vmtune.api.schemas.common import Model, Page, RawValues, Rows, Texts, Values, texts_of
from vmtune.api.schemas.controlled import RawSteps, StepTexts, StepView, step_texts
from vmtune.api.schemas.intents import IntentView, RawIntent
from vmtune.model.profile import Profile, Revision
from vmtune.model.profile_templates import ProfileTemplate
from vmtune.model.tunables.notes import NoteKind, value_notes
from vmtune.model.tunables.tunable import Value

Note = Field(default="", description="Note for the history.", max_length=1000)
ProfilesIntent = Field(
    default=None,
    description="What migrations with the profile have to keep, unless they have an intent of "
    "their own; null for none.",
)
Description = Field(default="", description="Description of the profile.", max_length=1000)


class ProfileCreate(Model):
    """A new profile. An omitted tunable is unset and keeps QEMU's value: unset is not zero."""

    name: StrictStr = Field(examples=["fast"])
    values: RawValues
    steps: RawSteps = Field(default=[])
    intent: RawIntent | None = ProfilesIntent
    description: StrictStr = Description
    note: StrictStr = Note


class ProfileReplace(Model):
    """All values, all steps and the description; omitted tunables are unset."""

    values: RawValues
    steps: RawSteps = Field(default=[])
    intent: RawIntent | None = Field(
        default=None,
        description="What migrations with the profile have to keep; null for none. Omitted, the "
        "current one stays: a client that does not know intents removes none.",
    )
    description: StrictStr = Description
    note: StrictStr = Note


class ProfilePatch(Model):
    """Changes: values by name, null to unset a tunable; others stay. Steps replace all steps."""

    values: RawValues | None = None
    steps: RawSteps | None = None
    intent: RawIntent | None = Field(
        default=None, description="Instead of the current one; null keeps that."
    )
    description: StrictStr | None = Field(default=None, max_length=1000)
    note: StrictStr = Note


class ValuesCheck(Model):
    """Values, steps and an intent to validate."""

    values: RawValues
    steps: RawSteps = Field(default=[])
    intent: RawIntent | None = Field(default=None, description="Validated, too; null for none.")


class ValueNoteView(Model):
    """Something to know of an accepted value."""

    tunable: str
    kind: NoteKind
    message: str


class CheckedValues(Model):
    """Accepted values, converted to the tunables' units, and accepted steps."""

    values: Values
    texts: Texts
    notes: list[ValueNoteView] = Field(
        description="Values that were rounded, or that a plan refuses on some hosts."
    )
    steps: list[StepView]
    step_texts: StepTexts


def notes_of(
    raw: Mapping[str, object], values: Mapping[str, Value], rows: Rows
) -> list[ValueNoteView]:
    """What is to be known of *values*, which were written as *raw*."""
    return [ValueNoteView.from_record(note) for note in value_notes(raw, values, rows)]


class ProfileView(Model):
    """A profile at its current revision."""

    name: str
    description: str
    revision: int = Field(description="Its ETag is this number, quoted.")
    values: Values
    texts: Texts
    steps: list[StepView] = Field(description="Convergence steps.")
    step_texts: StepTexts
    intent: IntentView | None = Field(
        description="What migrations with the profile have to keep; null for none."
    )
    note: str
    notes: list[ValueNoteView] = Field(
        description="In the answer to a change: values of it that were rounded, or that a plan "
        "refuses on some hosts. Otherwise empty."
    )
    created_at: datetime
    revised_at: datetime

    @classmethod
    def of(
        cls, profile: Profile, rows: Rows, written: Mapping[str, object] | None = None
    ) -> ProfileView:
        """:param written: the values of the change that is answered."""
        current = profile.current
        changed = {name: v for name, v in current.values.items() if name in (written or {})}
        return cls.from_record(
            profile,
            revision=current.number,
            values=dict(current.values),
            texts=texts_of(current.values, rows),
            steps=StepView.all_of(current.steps),
            step_texts=step_texts(current.steps),
            intent=IntentView.of(current.intent),
            note=current.note,
            notes=notes_of(written or {}, changed, rows),
            revised_at=current.created_at,
        )


class ProfilePage(Page[ProfileView]):
    """Profiles, sorted by name."""


class RevisionView(Model):
    """One immutable state of a profile."""

    profile: str
    revision: StrictInt
    values: Values
    texts: Texts
    steps: list[StepView] = Field(description="Convergence steps.")
    step_texts: StepTexts
    intent: IntentView | None = Field(
        description="What migrations with the profile have to keep; null for none."
    )
    note: str
    created_at: datetime

    @classmethod
    def of(cls, revision: Revision, rows: Rows) -> RevisionView:
        return cls.from_record(
            revision,
            revision=revision.number,
            texts=texts_of(revision.values, rows),
            steps=StepView.all_of(revision.steps),
            step_texts=step_texts(revision.steps),
            intent=IntentView.of(revision.intent),
        )


class RevisionPage(Page[RevisionView]):
    """Revisions of one profile, newest first."""


class ProfileTemplateView(Model):
    """Values and steps to begin a profile with."""

    name: str
    title: str = Field(description="What it is for, in a few words.")
    description: str
    source: str = Field(
        description="Whose policy it is and which of its settings; empty for vmtune's own."
    )
    values: Values
    texts: Texts
    steps: list[StepView]
    step_texts: StepTexts

    @classmethod
    def of(cls, template: ProfileTemplate, rows: Rows) -> ProfileTemplateView:
        return cls.from_record(
            template,
            values=dict(template.values),
            texts=texts_of(template.values, rows),
            steps=StepView.all_of(template.steps),
            step_texts=step_texts(template.steps),
        )


class ProfileTemplatePage(Page[ProfileTemplateView]):
    """All templates, vmtune's own first."""
