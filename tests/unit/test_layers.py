"""The import rules name every package, and the documentation shows what they say."""

import re

import pytest

from docs.generator.layers import CHECKOUT, DRAWING, contract, drawing, layers

PAGE = CHECKOUT / "docs" / "explanation" / "architecture.md"
BENCH = "bench."


def test_the_drawing_is_made_from_the_contract() -> None:
    assert DRAWING.read_text() == drawing(), "run: python -m docs.generator.layers"


def test_the_page_has_a_line_for_each_package() -> None:
    told = re.findall(r"^\| `(\S+)` \| .+\.? \|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(name for layer in layers() for name in layer)


def test_both_contracts_name_the_same_packages_of_bench() -> None:
    """The import rules leave bench out of the first one's complete list."""
    outer = {n.removeprefix(BENCH) for layer in layers() for n in layer if n.startswith(BENCH)}
    assert outer == {name for layer in layers("bench") for name in layer}


@pytest.mark.parametrize("name", ["layers", "bench"])
def test_contracts_of_layers_are_exhaustive(name: str) -> None:
    assert contract(name)["exhaustive"] is True


def test_the_client_is_kept_from_every_package_that_needs_more_than_http() -> None:
    """A new package is either named as forbidden, or here as one that only computes."""
    computes = {
        "__main__", "bench", "client", "config", "documents", "errors", "forecast", "model",
        "reference", "remote", "rendering", "stats", "testing", "tracing", "units",
    }  # fmt: skip
    forbidden = {
        name.removeprefix("vmtune.")
        for name in contract("client")["forbidden_modules"]
        if name.startswith("vmtune.")
    }
    packages = {name.split(".")[0] for layer in layers() for name in layer}
    assert packages == computes | {name for name in forbidden if "." not in name}
    assert not computes & forbidden
