"""What a database says when it fails, as errors that name the reason and the remedy."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from sqlalchemy import URL, exc, make_url

from vmtune.errors import InvalidInput, SetupError, VmtuneError

_SECRETS = frozenset({"password", "sslpassword"})

_LOCKED = (
    "database_locked",
    "another program has kept the database locked for too long",
    "end that program (a second vmtune, a backup, an open sqlite3 or psql session), then try again",
)
_FULL = (
    "database_full",
    "there is no space left for the database",
    "free some space on its file system, then try again",
)
_READ_ONLY = (
    "database_read_only",
    "the database cannot be written",
    "give the user of vmtune the right to write the file and its folder, or the tables",
)
_UNREACHABLE = (
    "database_unreachable",
    "the database cannot be reached",
    "check that it runs, that the URL is right and that this user may connect",
)
_CANNOT_OPEN = (
    "database_cannot_open",
    "the database file cannot be opened",
    "check that its folder exists and that the user of vmtune may read and write there",
)
_DAMAGED = (
    "database_damaged",
    "the file is damaged, or no SQLite database",
    "restore it from a backup, or name another file",
)
_OTHER = ("database_error", "the database failed", "see the log of the database")

_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _CANNOT_OPEN,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}
# The first two characters of PostgreSQL's SQLSTATE are its class, all five one error.
_POSTGRES = {
    "55P03": _LOCKED,
    "40P01": _LOCKED,
    "53100": _FULL,
    "25006": _READ_ONLY,
    "42501": _READ_ONLY,
    "08": _UNREACHABLE,
    "28": _UNREACHABLE,
    "3D": _UNREACHABLE,
    "53": _UNREACHABLE,
    "57": _UNREACHABLE,
}


def masked(url: URL) -> str:
    """*url* for people to read: without its password."""
    query = {key: "***" if key in _SECRETS else value for key, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def parse_url(text: str) -> URL:
    """The URL of a database that vmtune can use.

    :raise SetupError: it names no file, or another kind of database.
    """
    examples = "write sqlite:////FOLDER/vmtune.db or postgresql://USER@HOST/DATABASE"
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        # Not shown: it may contain a password anywhere.
        raise SetupError(
            "this is not a database URL", field="database", code="database_url", remedy=examples
        ) from None
    kind = url.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite" and url.database and url.database != ":memory:" and "mode" not in url.query:
        return url.set(drivername="sqlite")
    what = "a database in memory is lost at once" if kind == "sqlite" else "vmtune cannot use it"
    raise SetupError(
        f"{masked(url)}: {what}", field="database", code="database_url", remedy=examples
    )


@contextlib.contextmanager
def translated(url: URL) -> Iterator[None]:
    """Convert SQLAlchemy's errors into vmtune's.

    :raise SetupError: the database is locked, full, read-only, gone, ...
    :raise InvalidInput: it cannot hold a value.
    """
    try:
        yield
    except exc.DataError as error:
        raise _out_of_range() from error
    except exc.DBAPIError as error:
        raise _translate(error.orig, url) from error
    except sqlite3.Error as error:  # while a connection is set up
        raise _translate(error, url) from error
    except exc.StatementError as error:  # a value was refused before it was sent
        if isinstance(error.orig, VmtuneError):
            raise error.orig from None
        raise
    except exc.TimeoutError as error:
        raise SetupError(
            f"{masked(url)}: all connections are in use",
            field="database",
            code="database_busy",
            remedy="try again later",
        ) from error
    except OverflowError as error:
        raise _out_of_range() from error
    except OSError as error:
        raise SetupError(
            f"{masked(url)}: {error.strerror or error}",
            field="database",
            code=_CANNOT_OPEN[0],
            remedy=_CANNOT_OPEN[2],
        ) from error


def locked(url: URL) -> SetupError:
    """The error of a writer that waited too long for its turn."""
    return _setup_error(_LOCKED, url, "")


def _translate(error: BaseException | None, url: URL) -> SetupError:
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, sqlite3.Error):
        # The low byte is the primary code. What Python itself raises has none.
        number = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return _setup_error(_SQLITE.get(number, _OTHER), url, said)
    state = getattr(error, "sqlstate", None)
    if state is None:  # psycopg could not ask, or lost the server
        return _setup_error(_UNREACHABLE, url, said)
    return _setup_error(_POSTGRES.get(state, _POSTGRES.get(state[:2], _OTHER)), url, said)


def _setup_error(what: tuple[str, str, str], url: URL, said: str) -> SetupError:
    code, message, remedy = what
    for secret in (url.password, *(url.query.get(key) for key in _SECRETS)):
        if secret:
            said = said.replace(str(secret), "***")
    detail = f" ({said})" if said else ""
    return SetupError(
        f"{masked(url)}: {message}{detail}", field="database", code=code, remedy=remedy
    )


def _out_of_range() -> InvalidInput:
    return InvalidInput(
        "a value is larger than the database can hold",
        code="out_of_range",
        remedy="use a smaller one",
    )
