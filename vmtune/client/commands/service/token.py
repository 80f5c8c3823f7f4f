"""``vmtune token``: who may do what, from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

from vmtune.client.complete import browsers as complete_browsers
from vmtune.client.complete import tokens
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.near import near
from vmtune.client.resolve import BROWSER, find
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column, fields
from vmtune.client.views.render import moment
from vmtune.errors import InvalidInput
from vmtune.model.access.scopes import MEANINGS, Scope

_LASTS = re.compile(r"([0-9]{1,5})([hdwy])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_YEAR = timedelta(days=365)
_DEFAULT = "90d"
_MEANINGS = "\n".join(f"  {scope.value:<8} {meaning}" for scope, meaning in MEANINGS.items())


@click.group()
@common
def token() -> None:
    """API tokens and their permissions."""


@token.command(
    epilog="\b\nScopes (each except metrics includes read):\n" + _MEANINGS,
)
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="A permission of the token; repeatable.",
)
@click.option("--host", "hosts", multiple=True, help="Only this host and its VMs; repeatable.")
@click.option("--selector", help="Only VMs with all of these labels, such as tier=db,zone=a.")
@click.option(
    "--expires",
    default=_DEFAULT,
    show_default=True,
    help="Lifetime of the token: 12h, 90d, 4w, 1y, or never.",
)
@common
@pass_session
def create(
    session: Session,
    name: str,
    scopes: tuple[str, ...],
    hosts: tuple[str, ...],
    selector: str | None,
    expires: str,
) -> None:
    """Create a token called NAME and show it, this once.

    It has at most your own permissions, and loses them when you do.
    """
    ends = _end(expires)
    body = {
        "name": name,
        "scopes": list(scopes),
        "hosts": list(hosts) or None,
        "selector": _labels(selector),
        "expires_at": ends.isoformat() if ends else None,
    }
    made = session.client.post("/tokens", body)

    def lines() -> Iterator[str]:
        yield made["token"]
        if session.shows_progress:
            click.echo(
                f"Token {made['id']} ({name}) is not shown again. HTTP clients send it as\n"
                "`Authorization: Bearer TOKEN`; for this command put it into VMTUNE_TOKEN, or "
                "into a\nfile that only you may read.",
                err=True,
            )

    if session.output == "name":  # a name is known before, and the token is shown this once
        session.echo(made["token"])
    else:
        session.show(made, lines)


@token.command("list")
@click.option("--all", "everything", is_flag=True, help="Also expired and revoked tokens.")
@listing
@pass_session
def list_(session: Session, everything: bool) -> None:
    """List tokens, without their secrets."""
    rows = [
        row for row in session.client.items("/tokens") if everything or row["state"] == "active"
    ]
    columns = (
        Column("ID", id=True),
        Column("NAME"),
        Column("STATE"),
        Column("SCOPES", wraps=True, field="rights.scopes"),
        Column("EXPIRES", field="expires_at"),
        Column("LAST USED", field="used_at", spare=1),
        Column("FOR", wraps=True, field="rights", spare=2),
        Column("CREATED BY", spare=3),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            row["name"],
            row["state"],
            _scopes(row["rights"]),
            moment(row["expires_at"]) or "never",
            moment(row["used_at"]) or "never",
            _reach(row["rights"]),
            _who(row["created_by"]),
        )

    empty = "no tokens; create one with `vmtune token create NAME --scope read`"
    session.show_list({"items": rows, "next": None}, columns, cells, empty)


@token.command()
@click.argument("which", metavar="TOKEN", shell_complete=tokens)
@common
@pass_session
def revoke(session: Session, which: str) -> None:
    """Revoke TOKEN (id or name): it is invalid from now on."""
    id = _find(session.client, which)
    session.report(session.client.delete(f"/tokens/{segment(id)}"), f"token {id} revoked")


@token.command()
@listing
@pass_session
def browsers(session: Session) -> None:
    """List the signed-in browsers of all users."""
    rows = list(session.client.items("/browsers"))
    columns = (
        Column("ID", id=True),
        Column("WHO"),
        Column("SCOPES", wraps=True, field="rights.scopes"),
        Column("FROM", field="address", spare=2),
        Column("SIGNED IN", field="signed_in_at", spare=4),
        Column("LAST SEEN", field="seen_at", spare=1),
        Column("UNTIL", field="expires_at", spare=3),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            _who(row["who"]),
            _scopes(row["rights"]),
            row["address"],
            moment(row["signed_in_at"]),
            moment(row["seen_at"]),
            moment(row["expires_at"]),
        )

    empty = "no browser is signed in"
    session.show_list({"items": rows, "next": None}, columns, cells, empty)


@token.command("sign-out")
@click.argument("browser", metavar="BROWSER", shell_complete=complete_browsers)
@common
@pass_session
def sign_out(session: Session, browser: str) -> None:
    """Sign BROWSER (id) out: its cookie is invalid from now on.

    The token that it signed in with stays valid until it is revoked.
    """
    browser = str(find(session.client, browser, BROWSER)["id"])
    gone = session.client.delete(f"/browsers/{segment(browser)}")
    session.report(gone, f"browser {browser} signed out")


@token.command()
@common
@pass_session
def whoami(session: Session) -> None:
    """Show your identity and permissions."""
    row = session.client.get("/session")
    rights = row["rights"]
    pairs = [
        ("you are", _who(row["who"])),
        ("scopes", _scopes(rights)),
        ("for", _reach(rights)),
        ("expires", moment(row["expires_at"])),
    ]
    session.show(row, lambda: fields(pairs))


def _find(client: Client, which: str) -> str:
    """The id of the token called *which*, or whose id begins so.

    :raise InvalidInput: none is, or several are.
    """
    listed = list(client.items("/tokens"))
    if any(row["id"] == which for row in listed):
        return which
    named = [row for row in listed if row["name"] == which]
    active = [row for row in named if row["state"] == "active"]
    found = active or named or [row for row in listed if str(row["id"]).startswith(which)]
    if len(found) == 1:
        return str(found[0]["id"])
    lists = "`vmtune token list --all` shows them"
    hint = "" if found else near(which, (str(row["name"]) for row in listed))
    raise InvalidInput(
        f"there is no token {which!r}"
        if not found
        else f"several tokens are called {which!r}, or have ids that start so",
        field="TOKEN",
        remedy="; ".join(filter(None, (hint, f"use an id: {lists}"))),
    )


def _end(lasts: str) -> datetime | None:
    """When what lasts as long as that ends; None for never."""
    if lasts == "never":
        return None
    match = _LASTS.fullmatch(lasts)
    if match is None or int(match[1]) == 0:
        raise InvalidInput(
            f"{lasts!r} is not a duration",
            field="--expires",
            remedy="write 12h, 90d, 4w, 1y or never",
        )
    return datetime.now(UTC) + int(match[1]) * _UNITS.get(match[2], _YEAR)


def _labels(selector: str | None) -> dict[str, str]:
    from vmtune.model.profile import parse_selector  # noqa: PLC0415 - only where it is used

    return dict(parse_selector(selector)) if selector else {}


def _scopes(rights: Document) -> str:
    scopes = rights["scopes"]
    return "admin" if "admin" in scopes else ", ".join(scopes)


def _reach(rights: Document) -> str:
    hosts, labels = rights["hosts"], rights["selector"]
    parts = [f"host {name}" for name in hosts or ()]
    parts += [f"{key}={value}" for key, value in labels.items()]
    if hosts == []:
        return "nothing"
    return ", ".join(parts) or "all"


def _who(actor: Document) -> str:
    return f"{actor['kind']} {actor['name'] or actor['id']}".rstrip()
