"""Pages, pictures and Markdown from templates, and the arithmetic of axes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKDOWN = "\\`*_[]<>|"


def render(name: str, **values: object) -> str:
    """The template *name* with *values*, each escaped for what the template makes: HTML with SVG,
    or Markdown (``.md``). A value that the template names and that is not given is an error."""
    return _environment(name.endswith(".md")).get_template(name).render(values)


@cache
def _environment(markdown: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 0.1 s

    made = Environment(
        loader=PackageLoader(__name__),
        autoescape=not markdown,  # noqa: S701 - Markdown is escaped as Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escaped_markdown if markdown else _visible,
    )
    made.filters |= {"heading": _heading, "sentence": _sentence, "escaped": escaped_markdown}
    return made


def _visible(value: object) -> object:
    """*value* without characters that cannot be seen or that turn others around."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value
    return "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in value
    )


def escaped_markdown(value: object) -> str:
    """*value* so that Markdown shows it as it is, in a table too. What is marked as safe stays."""
    if hasattr(value, "__html__"):
        return str(value)
    text = str(value)
    for mark in _MARKDOWN:
        text = text.replace(mark, "\\" + mark)
    return text.replace("\n", " ")


def _heading(title: str) -> str:
    """A terminal's heading, ``95 % INTERVAL``, for a page; names stay as they are."""
    if not title.isupper():
        return title
    first, *rest = title.split(" ")
    return " ".join([first.capitalize(), *(w if len(w) == 1 else w.lower() for w in rest)])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
