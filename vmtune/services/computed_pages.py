"""Pages of lists that are computed anew each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from vmtune.storage import Page
from vmtune.storage.paging import make_cursor, page, read_cursor

_T = TypeVar("_T")


def part_by_key(
    items: Sequence[_T],
    listing: str,
    key: Callable[[_T], tuple[str, ...]],
    after: str | None,
    limit: int,
    backwards: bool = False,
    order: str = "",
) -> Page[_T]:
    """A page, in the order of *key*, which *order* names where there are several.

    :param listing: of :data:`_KEYS`.
    :raise InvalidInput: *after* continues another list.
    """
    rest = sorted(items, key=key, reverse=backwards)
    kinds = _KEYS[listing]
    listing = f"{listing} {order}".rstrip()
    if after is not None:
        seen = tuple(map(str, read_cursor(listing, after, *kinds)))
        rest = [item for item in rest if (key(item) < seen if backwards else key(item) > seen)]
    return page(
        rest[: limit + 1], limit, lambda item: item, lambda item: make_cursor(listing, *key(item))
    )


def part_in_order(
    items: Sequence[_T], listing: str, name: Callable[[_T], str], after: str | None, limit: int
) -> Page[_T]:
    """A page of a list, in the list's order.

    :param name: an item's unique name.
    :raise InvalidInput: *after* continues another list.
    """
    start = 0
    if after is not None:
        last = str(read_cursor(listing, after, str)[0])
        names = [name(item) for item in items]
        start = names.index(last) + 1 if last in names else len(names)
    rest = items[start : start + limit + 1]
    return page(rest, limit, lambda item: item, lambda item: make_cursor(listing, name(item)))


_KEYS: Mapping[str, tuple[type[str], ...]] = {
    "tunables": (str,),
    "references": (str,),
    "live_vms": (str, str, str, str),
    "sorted_hosts": (str, str),
}
