"""Completion in the real shells: what each offers when its script was read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import StubService, page

pytestmark = pytest.mark.integration

# Each reads the script that vmtune prints, and then asks for what Tab would offer after
# $LINE: as the shell's own machinery finds it, not by a call of vmtune.
BASH = """
eval "$(vmtune completion bash)"
read -ra COMP_WORDS <<<"$LINE"; [[ $LINE != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
registered=$(complete -p vmtune); registered=${registered##*-F }; "${registered%% *}" vmtune
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = """
vmtune completion fish | source
complete --do-complete $LINE | string split --fields 1 \\t
"""
# A terminal of its own: zsh completes in none else.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; eval "$(vmtune completion zsh)"'
zpty -w shell 'unsetopt beep; zle-line-init() { print -n ZLE""READY }; zle -N zle-line-init'
zpty -r shell seen '*ZLEREADY*'
zpty -w -n shell "$LINE"$'\x04'
zpty -r shell seen "*($ALL)*"
print -r -- ${seen##*ZLEREADY}
zpty -d shell
"""
SCRIPTS = {"bash": BASH, "fish": FISH, "zsh": ZSH}


def shell(name: str) -> object:
    there = shutil.which(name)
    return pytest.param(
        name, marks=pytest.mark.skipif(there is None, reason=f"{name} is not installed")
    )


@pytest.mark.parametrize("name", [shell(each) for each in SCRIPTS])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("vmtune webhook del", ["deliveries"]),
        ("vmtune host list -o j", ["json"]),
        ("vmtune vm show d", ["db1", "db2"]),
    ],
)
def test_what_the_shell_offers(
    service: StubService, tmp_path: Path, name: str, line: str, offered: list[str]
) -> None:
    service.on("GET", "/vms", page(docs.vm("db1"), docs.vm("db2"), problems=[]))
    ran = subprocess.run(
        [name, "-f" if name == "zsh" else "--private" if name == "fish" else "--norc", "-c",
         SCRIPTS[name]],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path), "TERM": "dumb",
            "LINE": line, "ALL": "|".join("*".join(each) for each in permutations(offered)),
        },
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    words = ran.stdout.split()
    for each in offered:
        assert any(word.endswith(each) for word in words), ran.stdout + ran.stderr
    assert "dashboard" not in words and "evacuate" not in words
