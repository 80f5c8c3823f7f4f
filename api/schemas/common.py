"""What all resources share: values with their text, pages, problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Generic, TypeVar

from pydantic import (
    BaseModel,
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

    model_config = ConfigDict(extra="forbid", frozen=True)


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

    @classmethod
    def of(cls, problem: Problem) -> ProblemItem:
        """A domain problem."""
        return cls(
            field=problem.field,
            code=problem.code,
            message=problem.message,
            remedy=problem.remedy,
        )


def problems_of(problems: Iterable[Problem]) -> list[ProblemItem]:
    """Domain problems as the API shows them."""
    return [ProblemItem.of(problem) for problem in problems]


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
