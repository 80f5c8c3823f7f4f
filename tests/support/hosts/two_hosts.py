"""The commands of the tutorial of the first two real hosts."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/tutorials/two-hosts.md"


def blocks(language: str = "") -> list[str]:
    """The commands of the page, by block; or what it has in another language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    return [text for kind, text in found if kind == language]


def certificates(host: str) -> str:
    """The commands that make certificates, and put them where libvirt and QEMU look for them, on
    one host alone."""
    (make,) = [text for text in blocks() if "openssl req" in text]
    (put,) = [text for text in blocks() if "put-certificates <<" in text]
    script, ends, _ = put.partition("\nEND\n")
    assert ends
    one = make.replace("for host in rack7 rack8;", f"for host in {host};")
    assert one != make
    return f"{one}{script}{ends}sh put-certificates {host}\n"
