"""axe-core in a page: what there keeps people out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_AXE = Path(__file__).parents[3] / "web/node_modules/axe-core/axe.min.js"
CONTRAST = "color-contrast"
"""The rule that takes as long as all others; what it says depends on the theme alone."""
# Fetching every stylesheet once more is for a rule about pages that turn themselves sideways.
_RUN = """async ([only, without]) => {
  const wanted = axe._audit.rules
    .filter(({ id, enabled, tags }) => enabled && id !== without && !tags.includes("experimental"))
    .map(({ id }) => id);
  if (wanted.length < 60) throw new Error(`axe has ${wanted.length} rules: is it another?`);
  const runOnly = { type: "rule", values: only ? [only] : wanted };
  const options = { resultTypes: ["violations"], preload: false, runOnly };
  return (await axe.run(document, options)).violations;
}"""


def faults(page: Page, *, only: str = "", without: str = "") -> list[str]:
    """The faults of what *page* shows now, grave or not, in a sentence each.

    By the rules that axe applies unless asked otherwise: those still on trial are left out, one of
    which calls each tooltip's span a fault that the keyboard reaches.

    :param only: look for this alone, by axe's name of the rule.
    :param without: a rule to leave out.
    """
    if not page.evaluate("typeof axe !== 'undefined'"):
        # By the debugger: the page's own policy lets no script in that the service does not serve.
        page.evaluate(_AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate(_RUN, [only, without])  # any JSON
    return [
        f"{each['impact']} {each['id']}: {each['help']}: {node['target']} {node['html'][:160]}: "
        + "; ".join(check["message"] for check in node["any"][:2])
        for each in found
        for node in each["nodes"][:5]
    ]
