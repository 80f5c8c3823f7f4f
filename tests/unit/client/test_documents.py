"""The documents that these tests give the command are those of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.examples import api_documents as docs
from vmtune.api.schemas.applications import ApplicationView, VerificationView
from vmtune.api.schemas.controlled import ReaperView, RoundView, StepRecordView
from vmtune.api.schemas.events import EventView
from vmtune.api.schemas.migrations import MigrationView, SampleView
from vmtune.api.schemas.plans import PlanView
from vmtune.api.schemas.profiles import ProfileView
from vmtune.api.schemas.vms import VmView


@pytest.mark.parametrize(
    ("view", "document"),
    [
        (ApplicationView, docs.application("applied", "effective", "overwritten")),
        (VerificationView, docs.verification()),
        (EventView, docs.progress(0.5)),
        (MigrationView, docs.migration()),
        (MigrationView, docs.migration("completed", reaper=docs.reaper())),
        (StepRecordView, docs.step_record()),
        (ReaperView, docs.reaper()),
        (RoundView, docs.reaper_round(-50)),
        (SampleView, docs.sample(5)),
        (PlanView, docs.plan(False, docs.finding())),
        (ProfileView, docs.profile()),
        (VmView, docs.vm()),
    ],
)
def test_the_api_has_this_shape(view: type[BaseModel], document: Mapping[str, Any]) -> None:
    view.model_validate(document)
    assert set(view.model_fields) == set(document)
