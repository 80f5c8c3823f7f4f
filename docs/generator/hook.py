"""What mkdocs calls: adds the generated pages, and spells out the patterns of the nav."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generator.pages import PAGES


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace each pattern of the nav by the pages that it matches and the nav does not name."""
    folder = Path(config.docs_dir)
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} | set(PAGES)
    config.nav = expanded(config.nav or [], sorted(pages))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    return files


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Refuse the one thing that the theme would load from elsewhere.

    :raise PluginError: the page has a Mermaid drawing.
    """
    if 'class="mermaid"' in html:
        raise PluginError(f"{page.file.src_uri}: Mermaid is loaded from unpkg.com; use a picture")
    return html


def expanded(nav: list[Any], pages: list[str]) -> list[Any]:
    """*nav* with its patterns spelt out; an item is a page, a pattern, or a title with either."""
    named = set(_named(nav))

    def spelt(items: list[Any]) -> list[Any]:
        result: list[Any] = []
        for item in items:
            if isinstance(item, str) and "*" in item:
                result += [page for page in pages if fnmatch(page, item) and page not in named]
            elif isinstance(item, dict):
                result += [
                    {title: spelt(below) if isinstance(below, list) else below}
                    for title, below in item.items()
                ]
            else:
                result.append(item)
        return result

    return spelt(nav)


def _named(items: list[Any]) -> list[str]:
    names: list[str] = []
    for item in items:
        if isinstance(item, dict):
            for below in item.values():
                names += _named(below) if isinstance(below, list) else [below]
        else:
            names.append(item)
    return names
