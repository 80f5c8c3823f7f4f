"""What a browser would see of a page, and what it may hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree


class Page(HTMLParser):
    """What a browser would see: elements, attributes and text."""

    VOID = ("meta", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def text(self) -> str:
        return " ".join(text for tag, text in self.texts if tag != "style")


TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "span", "ul",
    "li", "b", "figure", "figcaption", "svg", "path", "rect", "text", "tspan", "circle", "section",
    "div", "table", "thead", "tbody", "tr", "th", "td", "small", "dl", "dt", "dd", "main",
    "footer",
}  # fmt: skip


def check(page: str) -> Page:
    """It is whole, needs nothing else, and its picture can be drawn."""
    page.encode()
    seen = Page(page)
    assert set(seen.tags) <= TAGS
    for tag, name, value in seen.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "href", "xlink:href", "action", "data"), (tag, name)
        assert tag == "meta" or "url(" not in value
    style = page[page.index("<style>") : page.index("</style>")]
    assert "@import" not in style and "url(" not in style and "://" not in style
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        drawn = ElementTree.fromstring(picture)
        for element in drawn.iter():
            for value in element.attrib.values():
                assert "nan" not in value.lower() and "inf" not in value.lower(), value
    return seen
