"""Templates: what they escape, what they refuse, and that the package has them all."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined, UndefinedError, meta

from vmtune import rendering
from vmtune.api.pages.sign_in import sign_in_page
from vmtune.rendering import _heading, escaped_markdown, render

TEMPLATES = sorted((Path(rendering.__file__).parent / "templates").iterdir())


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("sign_in.html", style="", script="")
    assert rendering._environment(True).undefined is StrictUndefined


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_each_template_names_only_templates_that_exist(template: Path) -> None:
    environment = rendering._environment(template.suffix == ".md")
    environment.get_template(template.name)
    named = meta.find_referenced_templates(Environment().parse(template.read_text()))
    assert set(named) <= {path.name for path in TEMPLATES}


def test_invisible_characters_become_visible() -> None:
    svg = render(
        "interval.svg",
        plot={"label": "a\u202eb\0<c>\"'\n", "band": (0, 1), "zero": 0, "dot": 0, "reach": None,
              "ends": ()},
    )  # fmt: skip
    assert 'aria-label="a\ufffdb\ufffd&lt;c&gt;&#34;&#39;\n"' in svg


def test_markdown_is_escaped_in_lines_and_tables() -> None:
    assert escaped_markdown("a|b\n*c* [d](e) `f` <g>") == (r"a\|b \*c\* \[d\](e) \`f\` \<g\>")


@pytest.mark.parametrize("by_provider", [False, True])
def test_a_browser_may_use_the_sign_in_pages_own_style_and_script(by_provider: bool) -> None:
    response = sign_in_page(by_provider)
    page = bytes(response.body).decode()
    assert ("/api/v1/session/oidc" in page) is by_provider
    for tag in ("style", "script"):
        inline = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in response.headers["content-security-policy"]


def test_the_engine_of_the_templates_is_loaded_only_when_one_is_rendered() -> None:
    code = (
        "import sys, vmtune.bench.plots.plot, vmtune.bench.report.render, vmtune.rendering.scale;"
        "assert 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_terminals_heading_becomes_a_pages_and_keeps_the_letter_of_an_arm() -> None:
    found = [_heading(each) for each in ("B AGAINST A", "95 % INTERVAL", "Total time", "A")]
    assert found == ["B against A", "95 % interval", "Total time", "A"]
