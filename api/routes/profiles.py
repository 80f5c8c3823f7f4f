"""Profiles and their revisions. A change names the revision that it was made on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Query, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import PROFILE, READ
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.responses import ETAG, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import (
    PREFIX,
    After,
    IfMatch,
    Limit,
    Name,
    RevisionNumber,
    Services,
    read_etag,
)
from vmtune.api.routes.router import Router
from vmtune.api.schemas.common import texts_of
from vmtune.api.schemas.controlled import StepView, step_texts
from vmtune.api.schemas.profiles import (
    CheckedValues,
    ProfileCreate,
    ProfilePage,
    ProfilePatch,
    ProfileReplace,
    ProfileView,
    RevisionPage,
    RevisionView,
    ValuesCheck,
    notes_of,
)
from vmtune.api.wiring.deps import Container
from vmtune.errors import StaleRevision
from vmtune.model.idempotency import Begun
from vmtune.model.migration.intent import parse_intent
from vmtune.model.profile import Profile
from vmtune.services.tuning.profiles import accept

router = Router(prefix="/profiles", tags=["profiles"])
_CHANGE = problems(*WITH_BODY, 404, 409, 412, 428) | with_headers(200, ETAG)


def _shown(
    on: Container,
    profile: Profile,
    response: Response,
    written: Mapping[str, object] | None = None,
) -> ProfileView:
    response.headers["ETag"] = profile.etag
    return ProfileView.of(profile, on.tunables, written)


@router.get("", responses=problems(), dependencies=[READ])
async def list_profiles(
    on: Services,
    contains: Annotated[str, Query(description="Part of the name or description.")] = "",
    limit: Limit = 50,
    after: After = None,
) -> ProfilePage:
    """Profiles at their current revisions, sorted by name."""
    page = await on.queries.profiles(contains, after, limit)
    return ProfilePage(items=[ProfileView.of(p, on.tunables) for p in page.items], next=page.next)


async def _begun(on: Container, name: str) -> ProfileView:
    return ProfileView.of(await on.profiles.get(name), on.tunables)


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 409) | with_headers(201, LOCATION, ETAG),
    dependencies=[PROFILE, EVERYWHERE, keyed(Begun.PROFILE, _begun, "/profiles/{id}")],
)
async def create_profile(on: Services, body: ProfileCreate, response: Response) -> ProfileView:
    """Create a profile at revision 1."""
    profile = await on.profiles.create(
        body.name, body.values, body.description, body.note, body.steps, body.intent
    )
    response.headers["Location"] = f"{PREFIX}/profiles/{quote(profile.name, safe='')}"
    return _shown(on, profile, response, body.values)


@router.post("/check", responses=problems(*WITH_BODY), dependencies=[READ])
async def check_values(on: Services, body: ValuesCheck) -> CheckedValues:
    """Validate values, steps and an intent: returns values and steps converted, or the errors.
    Stores nothing."""
    values, steps = accept(body.values, body.steps, on.tunables)
    if body.intent is not None:
        parse_intent(body.intent)
    return CheckedValues(
        values=dict(values),
        texts=texts_of(values, on.tunables),
        notes=notes_of(body.values, values, on.tunables),
        steps=StepView.all_of(steps),
        step_texts=step_texts(steps),
    )


@router.get("/{name}", responses=problems(404) | with_headers(200, ETAG), dependencies=[READ])
async def get_profile(on: Services, name: Name, response: Response) -> ProfileView:
    """A profile at its current revision."""
    return _shown(on, await on.profiles.get(name), response)


@router.put("/{name}", responses=_CHANGE, dependencies=[PROFILE, EVERYWHERE])
async def replace_profile(
    on: Services, name: Name, body: ProfileReplace, expected: IfMatch, response: Response
) -> ProfileView:
    """Replace all values and steps, as a new revision. Omitted tunables are unset; an omitted
    intent stays, and null removes it."""
    profile = await on.profiles.revise(
        name,
        body.values,
        expected,
        body.note,
        body.description,
        body.steps,
        body.intent,
        keeps_intent="intent" not in body.model_fields_set,
    )
    return _shown(on, profile, response, body.values)


@router.patch("/{name}", responses=_CHANGE, dependencies=[PROFILE, EVERYWHERE])
async def amend_profile(
    on: Services, name: Name, body: ProfilePatch, expected: IfMatch, response: Response
) -> ProfileView:
    """Change some values, the steps or the description, as a new revision. Null unsets a
    tunable."""
    profile = await on.profiles.amend(
        name,
        body.values or {},
        expected,
        body.note,
        body.description,
        body.steps,
        body.intent,
    )
    return _shown(on, profile, response, body.values)


@router.delete(
    "/{name}",
    status_code=204,
    responses=problems(404, 409, 412),
    dependencies=[PROFILE, EVERYWHERE],
)
async def delete_profile(
    on: Services, name: Name, if_match: Annotated[str | None, Header(alias="If-Match")] = None
) -> None:
    """Delete a profile. Records keep its revisions."""
    expected = read_etag(if_match) if if_match is not None else None
    current = (await on.profiles.get(name)).current.number
    if expected not in (None, current):
        raise StaleRevision(
            f"profile {name} is at revision {current}, not {expected}",
            field="If-Match",
            remedy="read the current revision, then decide",
        )
    await on.profiles.delete(name)


@router.get("/{name}/revisions", responses=problems(404), dependencies=[READ])
async def list_revisions(
    on: Services, name: Name, limit: Limit = 50, after: After = None
) -> RevisionPage:
    """Revisions of a profile, newest first, also of a deleted profile."""
    page = await on.queries.revisions(name, after, limit)
    return RevisionPage(items=[RevisionView.of(r, on.tunables) for r in page.items], next=page.next)


@router.get("/{name}/revisions/{number}", responses=problems(404), dependencies=[READ])
async def get_revision(on: Services, name: Name, number: RevisionNumber) -> RevisionView:
    """One revision, also of a deleted profile."""
    return RevisionView.of(await on.profiles.revision(name, number), on.tunables)


@router.post(
    "/{name}/revisions/{number}/restore",
    responses=problems(404, 409, 412, 428) | with_headers(200, ETAG),
    dependencies=[PROFILE, EVERYWHERE, KEYED],
)
async def restore_revision(
    on: Services, name: Name, number: RevisionNumber, expected: IfMatch, response: Response
) -> ProfileView:
    """Create a new revision with the values and steps of an older one."""
    return _shown(on, await on.profiles.restore(name, number, expected), response)
