"""What all resources share: values with their text, pages, problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from vmtune.errors import Problem
from vmtune.model.tunables.tunable import Tunable, Value

T = TypeVar("T")
Rows = Mapping[str, Tunable]
"""Tunables by name: those of a registry, or of a plan."""


class Model(BaseModel):
    """Base of everything the API takes and gives: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    @classmethod
    def from_record(cls, record: object, **own: object) -> Self:
        """The model of *record*: each field is its attribute of the same name, *own* excepted."""
        if not own:
            return cls.model_validate(record)
        fields = {
            name: getattr(record, name) for name in cls.__pydantic_fields__ if name not in own
        }
        return cls.model_validate(fields | own)


TextOrNone = Annotated[str | None, BeforeValidator(lambda text: text or None)]
NumberOrNone = Annotated[int | None, BeforeValidator(lambda number: number or None)]
"""Null where the record has an empty text or 0."""


WireValue = StrictBool | StrictInt | StrictStr
"""A tunable's value: true or false, an integer in the tunable's unit, or a word."""

RawValue = Annotated[
    object,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "boolean"},
                {"type": "integer"},
                {"type": "string"},
                {"type": "null"},
            ],
            "description": "A value: true, on, 8, 64Mi, 30%, 1.5s, zstd. "
            "Null or omitted means unset.",
        }
    ),
]
"""Judged by the table of tunables, whose messages are better than a schema's."""

RawValues = Annotated[
    dict[StrictStr, RawValue],
    Field(description="Values by the tunable's name.", examples=[{"multifd": True}]),
]
Values = dict[str, WireValue]
Texts = dict[str, str]


class ValueText(Model):
    """A value and its text with a unit."""

    value: WireValue
    text: str

    @classmethod
    def of(cls, tunable: str, value: Value, rows: Rows) -> ValueText:
        """*value* of the tunable of that name."""
        return cls(value=value, text=text_of(tunable, value, rows))

    @classmethod
    def or_none(cls, tunable: str, value: Value | None, rows: Rows) -> ValueText | None:
        """The same, where there may be no value."""
        return None if value is None else cls.of(tunable, value, rows)


def text_of(tunable: str, value: Value, rows: Rows) -> str:
    """*value* for display, also of a tunable that is no longer known."""
    row = rows.get(tunable)
    return row.render(value) if row else str(value)


def texts_of(values: Mapping[str, Value], rows: Rows) -> Texts:
    """All of *values* as people read them."""
    return {name: text_of(name, value, rows) for name, value in values.items()}


class ProblemItem(Model):
    """One thing that is wrong."""

    field: str = Field(description="Path of the invalid input; empty if it is no single field.")
    code: str = Field(description="Stable and machine-readable.")
    message: str
    remedy: str = Field(default="", description="What to do about it; may be empty.")


def problems_of(problems: Iterable[Problem]) -> list[ProblemItem]:
    """Domain problems as the API shows them."""
    return [ProblemItem.from_record(problem) for problem in problems]


class ProblemDocument(Model):
    """Every error of the API (RFC 9457, ``application/problem+json``)."""

    type: str = Field(description="Identifier of this kind of problem.")
    title: str
    status: int
    detail: str
    code: str
    instance: str = Field(description="Id of the request, also in the service's log.")
    errors: list[ProblemItem]


class Page(Model, Generic[T]):
    """Some items of a list."""

    items: list[T]
    next: str | None = Field(
        description="Pass it as `after` for the next page; null on the last page."
    )
