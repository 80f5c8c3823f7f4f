"""What /etc/vmtune/vmtune.toml begins as."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from vmtune.config.settings import Settings
from vmtune.config.template import descriptions, settings_file


def uncommented(text: str) -> str:
    """With everything in force that looks like a setting or a table."""
    return re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE)


def test_nothing_is_in_force_in_it(tmp_path: Path) -> None:
    file = tmp_path / "vmtune.toml"
    file.write_text(settings_file())
    assert tomllib.loads(file.read_text()) == {}
    assert Settings.load(file, {}) == Settings()


def test_every_setting_is_in_it_and_told(tmp_path: Path) -> None:
    told = descriptions()
    text = settings_file()
    there = tomllib.loads(uncommented(text))
    for field in fields(Settings):
        assert told[field.name]
        assert field.name in there, field.name


def test_with_every_line_in_force_it_is_accepted_and_says_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "vmtune.toml"
    file.write_text(uncommented(settings_file()))
    loaded, defaults = Settings.load(file, {}), Settings()
    for field in fields(Settings):
        default = getattr(defaults, field.name)
        if default in (None, "", Path()):
            assert getattr(loaded, field.name) != default, "the example is in force"
        elif default != ():
            assert getattr(loaded, field.name) == default


def test_what_is_chosen_is_in_force(tmp_path: Path) -> None:
    file = tmp_path / "vmtune.toml"
    file.write_text(settings_file({"socket_group": "vmtune", "log_format": "json"}))
    assert tomllib.loads(file.read_text()) == {"socket_group": "vmtune", "log_format": "json"}


def test_a_setting_that_there_is_not_is_refused() -> None:
    with pytest.raises(AssertionError, match="log_fromat"):
        settings_file({"log_fromat": "json"})
