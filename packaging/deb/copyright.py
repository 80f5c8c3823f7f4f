"""Print debian/copyright: vmtune's own licence, and those of what the package bundles.

    python3 copyright.py SITE-PACKAGES PACKAGE-LOCK

What the bundled projects say themselves: Python's in their metadata, the web UI's in npm's lock
file. The full texts of Python's are in the *.dist-info folders.
"""

from __future__ import annotations

import json
import sys
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vmtune
Comment: /usr/lib/vmtune bundles the projects listed below, as they were released. The texts of
 their licences are in their *.dist-info folders there.

Files: *
Copyright: 2026 the vmtune authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0.
"""


def python_row(metadata: Message) -> str:
    classified = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    short = (metadata["License"] or "").strip().splitlines()
    told = metadata["License-Expression"] or ", ".join(classified) or " ".join(short[:1])
    return f"{metadata['Name']} {metadata['Version']}: {told or 'see its texts'}"


def main(site: Path, npm_lock: Path) -> None:
    dists = sorted(site.glob("*.dist-info/METADATA"))
    rows = [python_row(HeaderParser().parsestr(path.read_text())) for path in dists]
    web = {
        f"{where.rpartition('node_modules/')[2]} {package['version']}: "
        f"{package.get('license', 'see its source')}"
        for where, package in json.loads(npm_lock.read_text())["packages"].items()
        if where and not package.get("dev")
    }
    print(HEAD)
    for title, told in (
        ("usr/lib/vmtune/lib/*", [row for row in rows if not row.startswith("vmtune ")]),
        ("usr/lib/vmtune/lib/*/site-packages/vmtune/webui/*", sorted(web)),
    ):
        print(f"Files: {title}\nCopyright: the authors of each project\nLicense: bundled")
        print("Comment:", *(f"\n {row}" for row in told), "\n", sep="")
    print("License: bundled\n Each project has its own, named beside it above.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
