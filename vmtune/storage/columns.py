"""Column types that behave the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

from vmtune.errors import InvalidInput

Number = BigInteger().with_variant(Integer(), "sqlite")
"""A counted key. SQLite counts only columns that are declared INTEGER."""

Json = JSON(none_as_null=True)
"""Values as JSON text: true, 1 and "1" stay three things, and keys keep their order
(PostgreSQL's JSONB would sort them)."""


class UtcTime(TypeDecorator[datetime]):
    """A point in time, always with its zone. SQLite has no zones: there it is stored in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        assert value.tzinfo is not None, "a time without its zone"
        in_utc = value.astimezone(UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Plain(TypeDecorator[str]):
    """Text that both databases can store: PostgreSQL has no NUL character, and neither has
    lone surrogates. Revisions give its columns the collation "C" on PostgreSQL, so that
    both databases sort it by code point.

    :param field: named in the error about such text.
    """

    impl = Text
    cache_ok = True

    def __init__(self, field: str = "") -> None:
        super().__init__()
        self.field = field

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None and storable(value) != value:
            raise InvalidInput(
                "the text contains a NUL character or half a surrogate pair",
                field=self.field,
                remedy="remove that character",
            )
        return value


def storable(text: str) -> str:
    """*text* with what no database stores replaced by question marks."""
    return text.replace("\0", "?").encode(errors="replace").decode()
