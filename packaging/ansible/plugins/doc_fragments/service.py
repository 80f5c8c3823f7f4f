"""Options by which modules and the inventory reach the service."""

from __future__ import annotations


class ModuleDocFragment:
    """How the service is reached."""

    DOCUMENTATION = r"""
options:
  url:
    description:
      - URL of the service, V(https://NAME:PORT).
      - Without it the service is asked at O(socket).
      - V(http://) is accepted for this machine's own addresses alone, as the token would cross the network in the clear.
    type: str
  socket:
    description: Unix socket of the service. The kernel says who asks, so it takes no token.
    type: path
    default: /run/vmtune/vmtune.sock
  token:
    description: Token for O(url).
    type: str
  ca_path:
    description: File with the certificates of the authorities to trust, instead of the system's.
    type: path
  timeout:
    description: How long the service may take for one answer, in seconds.
    type: int
    default: 120
"""
