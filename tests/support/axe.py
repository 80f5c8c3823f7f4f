"""axe-core in a page: what there keeps people out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
_GRAVE = ("serious", "critical")
CONTRAST = "color-contrast"
"""The rule that takes as long as all others; what it says depends on the theme alone."""
# Rules that can find nothing grave take most of the time (`region` above all), and so does
# fetching every stylesheet once more, for a rule about pages that turn themselves sideways.
_RUN = """async ([grave, only, without]) => {
  const wanted = axe._audit.rules
    .filter(({ id, impact, enabled }) => enabled && grave.includes(impact) && id !== without)
    .map(({ id }) => id);
  if (wanted.length < 40) throw new Error(`axe has ${wanted.length} grave rules: is it another?`);
  const runOnly = { type: "rule", values: only ? [only] : wanted };
  const options = { resultTypes: ["violations"], preload: false, runOnly };
  return (await axe.run(document, options)).violations;
}"""


def faults(page: Page, *, only: str = "", without: str = "") -> list[str]:
    """The serious and critical faults of what *page* shows now, in a sentence each.

    :param only: look for this alone, by axe's name of the rule.
    :param without: a rule to leave out.
    """
    if not page.evaluate("typeof axe !== 'undefined'"):
        # By the debugger: the page's own policy lets no script in that the service does not serve.
        page.evaluate(_AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate(_RUN, [_GRAVE, only, without])  # any JSON
    return [
        f"{each['impact']} {each['id']}: {each['help']}: {node['target']} {node['html'][:160]}: "
        + "; ".join(check["message"] for check in node["any"][:2])
        for each in found
        if each["impact"] in _GRAVE
        for node in each["nodes"][:5]
    ]
