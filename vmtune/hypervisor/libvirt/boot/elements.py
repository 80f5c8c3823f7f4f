"""Elements of an XML document that is edited in place."""

from __future__ import annotations

from collections.abc import Iterator
from xml.dom.minidom import Document, Element


def root_of(document: Document) -> Element:
    """Its root."""
    root = document.documentElement
    assert root is not None, "a parsed document has a root"
    return root


def children(parent: Element, name: str) -> Iterator[Element]:
    """The child elements of that name; the parent may be changed meanwhile."""
    yield from [
        node
        for node in parent.childNodes
        if node.nodeType == node.ELEMENT_NODE and node.nodeName == name
    ]


def child(parent: Element, name: str) -> Element:
    """The first child element of that name, made where there is none."""
    found = next(children(parent, name), None)
    if found is None:
        document = parent.ownerDocument
        assert document is not None, "an element of a parsed document has one"
        found = document.createElement(name)
        parent.appendChild(found)
    return found


def remove_if_empty(element: Element) -> None:
    """Remove an element that has neither attributes nor anything but white space in it."""
    blank = all(n.nodeType == n.TEXT_NODE and not n.data.strip() for n in element.childNodes)
    declared = [name for name, _ in element.attributes.items() if not name.startswith("xmlns")]
    if blank and not declared and element.parentNode is not None:
        element.parentNode.removeChild(element)
