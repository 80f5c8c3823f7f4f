"""The page of the service's settings, from the settings classes."""

from __future__ import annotations

from docs.generator.markdown import plain
from vmtune.config.settings import DEFAULT_FILE, PREFIX
from vmtune.config.template import descriptions, settings_file


def page() -> str:
    """Every setting, and the file that has all of them."""
    parts = [
        "# Settings",
        f"The service reads `{DEFAULT_FILE}`, or the file that `vmtune serve --config` or "
        f"`{PREFIX}CONFIG` names. An environment variable goes before the file "
        f"(`{PREFIX}LISTEN_PORT=0`), an option of `vmtune serve` before both. "
        "Restart the service after a change.",
        "## The settings",
    ]
    parts += [
        f"### `{name}` {{ #{name} }}\n\n{plain(_sentence(text))}"
        for name, text in descriptions().items()
    ]
    parts += [
        "## The file with all defaults",
        "`python -m vmtune.config.template` prints this file.",
        f"```toml\n{settings_file()}```",
    ]
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    begun = text[:1].upper() + text[1:]
    return begun if begun.endswith(".") else f"{begun}."
