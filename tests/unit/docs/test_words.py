"""One word for one thing, and the field's own: words that only this project would use stay out of
texts that users read, and of names in the code.

docs/reference/glossary.md has the words to use.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generator import pages

CHECKOUT = Path(__file__).parents[3]

INSTEAD = {
    r"beside": "next to, with, during",
    r"mend(s|ed|ing)?": "fix, correct, repair",
    r"foreseen?": "forecast, expected",
    r"unsaid": "not expressed",
    r"unseen": "not checked, missed",
    r"tidy|tidies|tidied": "clean up, drop",
    r"patience": "timeout",
    r"whoever": "the user, the client, the program that",
    r"carr(y|ies|ied|ying) out": "do, apply, execute",
    r"hears?|heard": "receives, learns",
    r"heed(s|ed)?": "follow, take into account",
    r"reckon(s|ed)?": "compute, count",
    r"thereby|whence|hitherto": "by this, from which, until now",
    r"goes on with|gone on with": "continues, resumes",
    r"counts on in": "writes a heartbeat",
    r"the kernel's hand": "the kernel",
    r"by and by": "gradually",
    r"held against": "compared with",
    r"it is not said": "... is missing",
    r"shows nothing to who": "sign in to use",
    r"none runs now": "no running migrations",
    r"as it was ordered": "requested values",
    r"of them drift": "drifted",
    r"in small": "small VMs and short times",
    r"to who\b": "to users who",
    r"^is no (?!different)\w+|^is none of": "is not a, is not one of",
}
"""By regular expression: what to say instead."""

NAMES = {
    "beside": "next_to",
    "carry": "apply, run",
    "fleet": "cluster, services",
    "foresee": "forecast",
    "foreseen": "forecast",
    "ground": "testbed",
    "hearing": "subscription",
    "keeping": "retention",
    "meant": "expected",
    "mend": "fix",
    "patience": "timeout",
    "place": "testbed, position",
    "tell": "notify, publish",
    "tidy": "clean_up, drop_expired",
    "together": "coalesced",
    "told": "what the value is",
    "trip": "migration, run",
    "unsaid": "not_expressed",
    "unseen": "skipped",
}
"""Parts of the names of modules, classes, functions and fields, and what to call them."""

ALLOWED_NAMES = {
    "vmtune/model/evacuation/placement.py:place": "to place a VM on a host is the scheduler's word",
    "vmtune/reference/tables.py:place": "where a source was published",
    "api/schemas/bench/reference.py:place": "where a source was published",
}
"""File and name, and why it may be."""


PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*.md")
PACKAGING = ("packaging/**/*.yml", "packaging/**/*.service", "packaging/**/*.json")


def _texts() -> Iterator[tuple[str, str]]:
    """Where it stands, and a line that users read. The generated pages have the texts of settings,
    tunables, findings, metrics, commands and the HTTP API."""
    for pattern in (*PAGES, *PACKAGING):
        for file in CHECKOUT.glob(pattern):
            yield from _lines(str(file.relative_to(CHECKOUT)), file.read_text())
    for name, write in pages.PAGES.items():
        yield from _lines(name, write())
    for file in (CHECKOUT / "web/src").rglob("*.tsx"):
        if ".test." not in file.name:
            uncommented = re.sub(r"/\*.*?\*/|//.*", "", file.read_text(), flags=re.DOTALL)
            yield from _lines(str(file.relative_to(CHECKOUT)), uncommented)


def _messages() -> Iterator[tuple[str, str]]:
    """Where it stands, and a text that the service or the command may print: every string with a
    space in it that is no docstring."""
    for file in (CHECKOUT / "vmtune").rglob("*.py"):
        at = str(file.relative_to(CHECKOUT))
        if at.startswith(("vmtune/migrations/", "vmtune/testing/", "vmtune/packs/")):
            continue
        tree = ast.parse(file.read_text())
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if " " in node.value.strip() and id(node) not in docs:
                    yield f"{at}:{node.lineno}", " ".join(node.value.split())


def _lines(where: str, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield f"{where}:{number}", re.sub(r"`[^`]*`", "", line)


def names() -> Iterator[tuple[str, str]]:
    """File and name of modules, classes, functions and fields of the product."""
    for package in ("vmtune", "api"):
        for file in (CHECKOUT / package).rglob("*.py"):
            at = str(file.relative_to(CHECKOUT))
            if at.startswith(("vmtune/api/", "vmtune/migrations/", "vmtune/packs/")):
                continue  # links, and the sources of packs
            yield at, file.stem
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield at, node.name
                if isinstance(node, ast.ClassDef):
                    for field in node.body:
                        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                            yield at, field.target.id


def parts(name: str) -> list[str]:
    """The words of a name: ``KeepingRepository``, ``keeping_of``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


texts = functools.cache(lambda: tuple(_texts()))
messages = functools.cache(lambda: tuple(_messages()))


@pytest.mark.parametrize("word", INSTEAD)
def test_texts_use_the_words_of_operators(word: str) -> None:
    banned = re.compile(rf"\b(?:{word})\b", re.IGNORECASE)
    found = [
        f"{where}: {text.strip()}" for where, text in (*texts(), *messages()) if banned.search(text)
    ]
    assert found == [], f"say {INSTEAD[word]}"


def test_names_use_the_words_of_the_field() -> None:
    found = {
        f"{at}:{name}": NAMES[part] for at, name in names() for part in parts(name) if part in NAMES
    }
    assert {each: found[each] for each in found if each not in ALLOWED_NAMES} == {}
    assert set(ALLOWED_NAMES) <= set(found), "no longer needed"
