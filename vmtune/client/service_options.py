"""Options that override the service's settings, for the commands that run next to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from vmtune.config.settings import PREFIX, Settings

_F = TypeVar("_F", bound=Callable[..., Any])  # any: click calls it with its options

_OPTIONS = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="The settings file.  [env: VMTUNE_CONFIG; default: /etc/vmtune/vmtune.toml]",
    ),
    click.option(
        "--state-dir", type=click.Path(path_type=Path), help="Directory of the databases."
    ),
    click.option(
        "--database-url", help="sqlite:////FOLDER/FILE or postgresql://USER@HOST/DATABASE."
    ),
)


def service_options(command: _F) -> _F:
    """``--config``, ``--state-dir`` and ``--database-url``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings(config: Path | None, overrides: Mapping[str, object]) -> Settings:
    """The service's settings: its file, then VMTUNE_* variables, then options.

    :param overrides: by the setting's name; None is not given.
    :raise InvalidInput: a setting is unknown or has a bad value.
    """
    given = {
        PREFIX + name.upper(): str(value.absolute() if isinstance(value, Path) else value)
        for name, value in overrides.items()
        if value is not None
    }
    return Settings.load(config, {**os.environ, **given})
