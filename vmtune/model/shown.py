"""What a message shows of an address that somebody wrote."""

from __future__ import annotations

import re

_MOST = 100
_PASSWORD = re.compile(r"(https?://|://[^:@/?#\[]*:).*@", re.DOTALL)
_VALUE = re.compile(r"([?&;][^=&;]*)=[^&;]*")


def shown(address: str) -> str:
    """*address* in quotes, cut, without what may be a secret: a password, and values of parameters.

    >>> shown("qemu+ssh://root:secret@rack2/system?password=secret")
    "'qemu+ssh://root:...@rack2/system?password=...'"
    """
    hidden = _VALUE.sub(r"\1=...", _PASSWORD.sub(r"\1...@", address))
    return repr(hidden[:_MOST])
