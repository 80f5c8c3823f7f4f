"""axe-core in a page: what there keeps people out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
_GRAVE = ("serious", "critical")
# PatternFly's own, and nothing that a page could say otherwise: the button that unfolds a wizard's
# steps on a narrow screen is called "Wizard toggle", whatever step it shows.
_NOT_OURS = [".pf-v6-c-wizard__toggle"]
_RUN = """async ([rules, exclude]) => {
  const options = { resultTypes: ["violations"] };
  if (rules.length) options.runOnly = { type: "rule", values: rules };
  return (await axe.run({ include: document, exclude }, options)).violations;
}"""


def faults(page: Page, *rules: str) -> list[str]:
    """The serious and critical faults of what *page* shows now, in a sentence each.

    :param rules: look for these only, by axe's names.
    """
    if not page.evaluate("typeof axe !== 'undefined'"):
        # By the debugger: the page's own policy lets no script in that the service does not serve.
        page.evaluate(_AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate(_RUN, [list(rules), _NOT_OURS])  # any JSON
    return [
        f"{each['impact']} {each['id']}: {each['help']}: {node['target']} {node['html'][:160]}: "
        + "; ".join(check["message"] for check in node["any"][:2])
        for each in found
        if each["impact"] in _GRAVE
        for node in each["nodes"][:5]
    ]
