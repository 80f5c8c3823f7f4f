"""Campaigns, their runs as far as their course depends on them, and noise floors."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.bench.model.campaign import file as campaign_file
from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.campaign.record import (
    NEXT,
    CampaignRecord,
    CampaignRun,
    CampaignState,
    Forecast,
)
from vmtune.documents.dataclass_json import from_json
from vmtune.errors import Conflict, NotFound
from vmtune.stats.model import NoiseFloor
from vmtune.storage.columns import storable
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.tables.campaigns import CampaignRow, NoiseFloorRow
from vmtune.storage.tables.core import RunRow

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_MOST_MARGIN_PERCENT = 99.0


def _campaign(stored: dict[str, Any]) -> Campaign:  # any JSON
    """A campaign as it was kept. A margin of 100 % was accepted once, and could not be judged."""
    margin = stored.get("margin_percent")
    if isinstance(margin, int | float) and margin >= 100:
        stored = {**stored, "margin_percent": _MOST_MARGIN_PERCENT}
    return campaign_file.from_json(stored, {})


_MAP = Mapper(
    CampaignRecord,
    CampaignRow,
    campaign=Stored(campaign_file.to_json, _campaign),
    forecast=Stored(load=partial(from_json, Forecast)),
)
_RUNS = Mapper(CampaignRun, RunRow)
_FLOORS = Mapper(NoiseFloor, NoiseFloorRow)


@dataclass(frozen=True, slots=True)
class StoredFloor:
    """A noise floor, and its calibration."""

    scenario: str
    floor: NoiseFloor


class CampaignRepository:
    """The campaigns, by UUID; lists give the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, campaign: Campaign, forecast: Forecast, host: str, id: UUID | None = None
    ) -> CampaignRecord:
        """Record a campaign before its first run; it runs from now on."""
        with self._database.write() as session:
            made = CampaignRecord(
                id=id or uuid4(),
                campaign=campaign,
                forecast=forecast,
                state=CampaignState.RUNNING,
                host=host,
                created_at=self._database.now(),
            )
            row = _MAP.row(made, name=campaign.name)
            session.add(row)
            session.flush()
            return _MAP.record(row)

    def enter(self, id: UUID, state: CampaignState, reason: str = "") -> CampaignRecord:
        """Set its state.

        :raise NotFound: there is no such campaign.
        :raise Conflict: that state cannot follow its present one.
        """
        with self._database.write() as session:
            row = _find(session, id)
            if state not in NEXT[CampaignState(row.state)]:
                raise Conflict(
                    f"the campaign is {row.state} and cannot become {state.value}",
                    field="campaign",
                    code="illegal_transition",
                    remedy="read it again: it has changed in the meantime",
                )
            row.state, row.reason = state, storable(reason)
            if state.ended:
                row.ended_at = self._database.now()
            session.flush()
            return _MAP.record(row)

    def get(self, id: UUID) -> CampaignRecord:
        """:raise NotFound: there is no such campaign."""
        with self._database.read() as session:
            return _MAP.record(_find(session, id))

    def named(self, name: str) -> CampaignRecord:
        """The campaign of that id, or the newest of that name.

        :raise NotFound: there is none.
        """
        if _ID.fullmatch(name):
            return self.get(UUID(name))
        query = select(CampaignRow).where(CampaignRow.name == name)
        with self._database.read() as session:
            row = session.scalar(query.order_by(CampaignRow.number.desc()).limit(1))
            if row is None:
                raise NotFound(
                    f"there is no campaign {name[:70]!r}",
                    field="campaign",
                    remedy="`vmtune bench campaign list` lists them",
                )
            return _MAP.record(row)

    def list(
        self,
        name: str | None = None,
        states: Collection[CampaignState] = (),
        after: str | None = None,
        limit: int = 100,
        search: str = "",
    ) -> Page[CampaignRecord]:
        """Campaigns, newest first.
        :param states: filter; empty for all.
        :param search: a part of the name, or the beginning of the UUID.
        """
        query = select(CampaignRow).order_by(CampaignRow.number.desc())
        query = query.limit(check_limit(limit) + 1)
        if name is not None:
            query = query.where(CampaignRow.name == name)
        if states:
            query = query.where(CampaignRow.state.in_(states))
        if search:
            query = query.where(has_part(search, (CampaignRow.name,), CampaignRow.id))
        if after is not None:
            (number,) = read_cursor("campaigns", after, int)
            query = query.where(CampaignRow.number < number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(rows, limit, _MAP.record, lambda row: make_cursor("campaigns", row.number))

    def unfinished(self) -> tuple[CampaignRecord, ...]:
        """Those that have not ended, oldest first."""
        states = [state for state in CampaignState if not state.ended]
        query = select(CampaignRow).where(CampaignRow.state.in_(states))
        with self._database.read() as session:
            return tuple(map(_MAP.record, session.scalars(query.order_by(CampaignRow.number))))

    def runs(self, id: UUID) -> tuple[CampaignRun, ...]:
        """All its runs in the order in which they were made."""
        query = select(*_RUNS.selected).where(RunRow.campaign == id).order_by(RunRow.number)
        with self._database.read() as session:
            return tuple(map(_RUNS.record, session.execute(query)))

    def keep_floors(self, campaign: UUID, floors: Sequence[StoredFloor]) -> None:
        """Store a calibration's noise floors, replacing earlier ones."""
        with self._database.write() as session:
            for each in floors:
                row = _FLOORS.row(
                    each.floor,
                    scenario=each.scenario,
                    campaign=campaign,
                    made_at=self._database.now(),
                )
                session.merge(row)

    def floors(self, environments: Collection[str]) -> tuple[StoredFloor, ...]:
        """Noise floors of these environments, the newest first."""
        query = select(NoiseFloorRow).where(NoiseFloorRow.environment.in_(environments))
        with self._database.read() as session:
            return tuple(
                StoredFloor(row.scenario, _FLOORS.record(row))
                for row in session.scalars(
                    query.order_by(NoiseFloorRow.made_at.desc(), NoiseFloorRow.scenario)
                )
            )


def _find(session: Session, id: UUID) -> CampaignRow:
    row = session.scalar(select(CampaignRow).where(CampaignRow.id == id))
    if row is None:
        raise NotFound(
            f"there is no campaign {id}",
            field="campaign",
            remedy="`vmtune bench campaign list` lists them",
        )
    return row
