"""The kinds of jobs: what a job's id is the id of. Records in the database name them."""

from __future__ import annotations

MIGRATION_KIND = "migration"
OBSERVED_KIND = "observed migration"
EVACUATION_KIND = "evacuation"
RUN_KIND = "run"
CAMPAIGN_KIND = "campaign"
STUDY_KIND = "study"
