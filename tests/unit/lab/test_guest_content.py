"""What the guest writes, by its own code, compiled for this machine."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.lab.guest_build import SOURCE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]

PAGE = 4096
PAGES = 100
FOREIGN = 0xA5
"""What lies about before anything is laid out, and around the region."""


class Kind(Enum):
    """enum kind of guest/content.h."""

    PLAIN = 0
    ZERO = 1
    RANDOM = 2
    PATTERN = 3


class Content(ctypes.Structure):
    """struct content of guest/content.h."""

    _fields_ = (
        ("region", ctypes.c_uint64),
        ("stride", ctypes.c_uint32),
        ("zero_percent", ctypes.c_uint32),
        ("random_percent", ctypes.c_uint32),
        ("check", ctypes.c_uint32),
    )


@dataclass
class Memory:
    """A region with a page before it and one after, and the guest's code to write to it."""

    library: ctypes.CDLL
    pages: mmap.mmap
    address: int

    def content(self, stride: int, zero: int, random: int) -> Content:
        return Content(self.address, stride, zero, random)

    def begin(self, byte: int) -> None:
        self.pages[:] = bytes([byte]) * len(self.pages)

    def lay_out(self, content: Content, length: int = PAGES * PAGE) -> None:
        self.library.content_lay_out(ctypes.byref(content), self.address, self.address + length)

    def write(self, content: Content, number: int, begin: int, end: int) -> int:
        """One pass from offset *begin* to before *end*; returns where it would go on."""
        at, limit = self.address + begin, self.address + end
        after: int = self.library.content_write(ctypes.byref(content), at, limit, number)
        return after - self.address

    def wrong(self, content: Content, number: int) -> int:
        """What a pass finds before it writes."""
        end = self.address + PAGES * PAGE
        return int(self.library.content_wrong(ctypes.byref(content), self.address, end, number))

    def kind(self, content: Content, page: int) -> tuple[Kind, int]:
        alike = ctypes.c_uint64()
        found = self.library.content_kind(ctypes.byref(content), page, ctypes.byref(alike))
        return Kind(found), alike.value

    def region(self) -> bytes:
        return self.pages[PAGE:-PAGE]

    def page(self, number: int) -> bytes:
        return self.region()[number * PAGE : (number + 1) * PAGE]

    def around(self) -> set[int]:
        return set(self.pages[:PAGE] + self.pages[-PAGE:])


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("guest") / "content.so"
    subprocess.run(
        [
            *("gcc", "-m64", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"),
            *("-fno-strict-aliasing", "-fsanitize=undefined", "-fno-sanitize=alignment"),
            *("-fsanitize-undefined-trap-on-error", "-o", str(path), str(SOURCE / "content.c")),
        ],
        check=True,
        timeout=60,
    )
    library = ctypes.CDLL(str(path))
    pointer, word = ctypes.POINTER(Content), ctypes.c_uint64
    library.content_kind.argtypes = (pointer, word, ctypes.POINTER(word))
    library.content_lay_out.argtypes = (pointer, word, word)
    library.content_lay_out.restype = None
    library.content_write.argtypes = (pointer, word, word, word)
    library.content_write.restype = word
    library.content_wrong.argtypes = (pointer, word, word, word)
    library.content_wrong.restype = word
    pages = mmap.mmap(-1, (PAGES + 2) * PAGE)
    start = ctypes.c_char.from_buffer(pages)
    yield Memory(library, pages, ctypes.addressof(start) + PAGE)
    del start
    pages.close()


def packed(page: bytes) -> float:
    """How much of it is left when it is compressed."""
    return len(zlib.compress(page, 9)) / len(page)


def is_of(kind: Kind, page: bytes) -> bool:
    match kind:
        case Kind.ZERO:
            return not any(page)
        case Kind.RANDOM:
            return packed(page) > 0.95
        case Kind.PATTERN:
            return 0.05 < packed(page) < 0.6
        case Kind.PLAIN:
            return packed(page) < 0.05


shares = st.tuples(st.integers(0, 100), st.integers(0, 100)).filter(lambda s: sum(s) <= 100)
strides = st.one_of(st.integers(1, 8), st.integers(1, 3 * PAGE), st.just(PAGE))


@given(shares, st.integers(0, 1 << 20))
def test_every_hundred_pages_have_the_shares(
    memory: Memory, share: tuple[int, int], first: int
) -> None:
    zero, random = share
    content = memory.content(PAGE, zero, random)
    kinds = Counter(memory.kind(content, page)[0] for page in range(first, first + 100))
    if zero + random:
        rest = 100 - zero - random
        expected = {Kind.ZERO: zero, Kind.RANDOM: random, Kind.PATTERN: rest}
    else:
        expected = {Kind.PLAIN: 100}
    assert kinds == Counter(expected)


@given(shares, st.integers(0, 1 << 20))
def test_pages_are_alike_as_far_as_it_says(
    memory: Memory, share: tuple[int, int], page: int
) -> None:
    content = memory.content(PAGE, *share)
    kind, alike = memory.kind(content, page)
    assert alike > 0
    run = range(page, page + min(alike, 300))
    assert {memory.kind(content, each)[0] for each in run} == {kind}


@given(shares, strides, st.lists(st.integers(1, 3), max_size=3))
@settings(max_examples=25, deadline=None)
def test_a_page_remains_of_its_kind(
    memory: Memory, share: tuple[int, int], stride: int, passes: list[int]
) -> None:
    content = memory.content(stride, *share)
    memory.begin(FOREIGN if sum(share) else 0)
    memory.lay_out(content)
    for number in passes:
        memory.write(content, number, 0, PAGES * PAGE)
    for page in range(PAGES):
        assert is_of(memory.kind(content, page)[0], memory.page(page)), page
    assert memory.around() == {FOREIGN if sum(share) else 0}


@pytest.mark.parametrize("stride", [1, 4, 5, 64, PAGE])
def test_random_pages_stay_random_for_long(memory: Memory, stride: int) -> None:
    content = memory.content(stride, 0, 100)
    memory.lay_out(content)
    for number in range(1, 300):
        memory.write(content, number, 0, 2 * PAGE)
    assert all(packed(memory.page(page)) > 0.95 for page in (0, 1))


def test_no_two_pages_are_alike_but_those_of_zeros(memory: Memory) -> None:
    content = memory.content(1, 20, 30)
    memory.lay_out(content)
    laid_out = [memory.page(page) for page in range(PAGES)]
    memory.write(content, 1, 0, PAGES * PAGE)
    written = [memory.page(page) for page in range(PAGES)]
    assert len(set(laid_out + written)) == 1 + 2 * 80
    # Compressed as one stream, as multifd does, they do not find each other either.
    randoms = b"".join(page for page in laid_out + written if packed(page) > 0.95)
    assert len(randoms) == 2 * 30 * PAGE
    assert packed(randoms) > 0.95


def test_a_pattern_packs_as_common_memory_does(memory: Memory) -> None:
    content = memory.content(1, 0, 1)
    memory.lay_out(content)
    assert all(0.27 < packed(memory.page(page)) < 0.35 for page in range(1, PAGES))
    assert 0.2 < packed(memory.region()[PAGE:]) < 0.35


@given(shares, strides, st.integers(1, 600))
@settings(max_examples=50, deadline=None)
def test_a_pass_changes_what_it_writes_and_nothing_else(
    memory: Memory, share: tuple[int, int], stride: int, number: int
) -> None:
    content = memory.content(stride, *share)
    memory.begin(FOREIGN if sum(share) else 0)
    memory.lay_out(content)
    memory.write(content, number, 0, PAGES * PAGE)
    before = memory.region()
    memory.write(content, number + 1, 0, PAGES * PAGE)
    after = memory.region()
    if stride <= 4:
        # Which bytes of a page differ is chance; that none does cannot be.
        pages = [slice(page * PAGE, (page + 1) * PAGE) for page in range(PAGES)]
        changed = {n for n, page in enumerate(pages) if before[page] != after[page]}
        may = set(range(PAGES))
    else:
        changed = {at for at in range(len(before)) if before[at] != after[at]}
        may = set(range(0, PAGES * PAGE, stride))
    in_a_page = 1 if stride <= 4 else PAGE
    zeros = {at for at in may if memory.kind(content, at // in_a_page)[0] is Kind.ZERO}
    assert changed == may - zeros


@given(shares, st.integers(5, 3 * PAGE), st.lists(st.integers(1, PAGES * PAGE - 1), max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_pass_in_several_goes_is_the_same_pass(
    memory: Memory, share: tuple[int, int], stride: int, limits: list[int]
) -> None:
    content = memory.content(stride, *share)
    results = []
    for stops in ([PAGES * PAGE], [*sorted(limits), PAGES * PAGE]):
        memory.begin(0)
        memory.lay_out(content)
        at = 0
        for stop in stops:
            at = memory.write(content, 7, at, stop)
        results.append((at, memory.region()))
    assert results[0] == results[1]


@pytest.mark.parametrize("share", [(0, 0), (0, 100), (50, 0), (0, 1)])
@pytest.mark.parametrize("end", [1, 7, PAGE - 1, PAGE + 9])
def test_a_region_may_end_within_a_page(memory: Memory, share: tuple[int, int], end: int) -> None:
    memory.begin(FOREIGN)
    content = memory.content(1, *share)
    memory.lay_out(content, end)
    assert set(memory.region()[end:]) == {FOREIGN}
    assert memory.write(content, 1, 0, end) == end
    assert set(memory.region()[end:]) == {FOREIGN}


def test_unset_shares_write_one_value_that_goes_on_with_each_pass(memory: Memory) -> None:
    memory.begin(0)
    content = memory.content(PAGE, 0, 0)
    memory.lay_out(content)
    assert set(memory.region()) == {0}
    seen = []
    for number in (1, 2, 254, 255, 256):
        memory.write(content, number, 0, PAGES * PAGE)
        seen.append(memory.region()[::PAGE])
    assert [set(bytes_) for bytes_ in seen] == [{2}, {3}, {255}, {1}, {2}]
    memory.write(memory.content(4, 0, 0), 1, 0, PAGES * PAGE)
    assert set(memory.region()) == {2}


@pytest.mark.parametrize("stride", [8, 512, PAGE, 2 * PAGE])
def test_words_that_are_lost_old_or_of_another_place_are_counted(
    memory: Memory, stride: int
) -> None:
    content = Content(memory.address, stride, 0, 0, 1)
    memory.begin(0)
    memory.lay_out(content)
    per_page = max(1, PAGE // stride)
    assert memory.wrong(content, 1) == 0, "nothing was written yet"
    for number in (1, 2, 3):
        memory.write(content, number, 0, PAGES * PAGE)
        assert memory.wrong(content, number + 1) == 0
    whole = memory.region()
    memory.write(content, 4, 0, PAGES * PAGE)

    def put(page: int, content_of_page: bytes) -> None:
        at = PAGE * (1 + page)
        memory.pages[at : at + PAGE] = content_of_page

    last = memory.page(2)
    for other in (bytes(PAGE), whole[2 * PAGE : 3 * PAGE], memory.page(4)):  # lost, old, another's
        put(2, other)
        assert memory.wrong(content, 5) == per_page
        put(2, last)
    assert memory.wrong(content, 5) == 0
    unchecked = Content(memory.address, stride, 0, 0, 0)
    put(2, bytes(PAGE))
    assert memory.wrong(unchecked, 5) == 0
