"""Sends one notification: to an address that was checked, without redirects, within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from vmtune import __version__
from vmtune.model.webhooks import why_not_there

WITHIN_S = 15.0
_HEAD_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of an attempt.

    :param status: of the answer; None without one.
    :param problem: why it failed; empty where it did not.
    """

    status: int | None
    problem: str


class _Unsendable(Exception):
    """Nothing was sent."""


async def send(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    own_addresses: bool = False,
    within_s: float = WITHIN_S,
    context: ssl.SSLContext | None = None,
) -> Sent:
    """POST *body* to *url*. Any 2xx is success; a redirect is not followed, and a failure.

    The name is resolved once, every address of it is checked, and the connection is made to a
    checked one: a name that changes meanwhile leads nowhere else. Of the answer the first 16 KiB
    at most are read.

    :param own_addresses: also send to this machine's own and link-local addresses.
    :param within_s: for all of it.
    """
    try:
        async with asyncio.timeout(within_s):
            status = await _post(url, headers, body, own_addresses, context)
    except TimeoutError:
        return Sent(None, f"no answer within {within_s:g} s")
    except (_Unsendable, ssl.SSLError) as error:
        return Sent(None, str(error))
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        return Sent(None, f"{type(error).__name__}: {error}"[:300])
    if 200 <= status < 300:
        return Sent(status, "")
    followed = ": redirects are not followed" if 300 <= status < 400 else ""
    return Sent(status, f"the receiver answered {status}{followed}")


async def _post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    own_addresses: bool,
    context: ssl.SSLContext | None,
) -> int:
    parts = urlsplit(url)
    host, tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    address = await _address(host, port, own_addresses)
    if tls and context is None:
        context = await asyncio.to_thread(ssl.create_default_context)
    reader, writer = await asyncio.open_connection(
        address, port, ssl=context if tls else None,
        server_hostname=host if tls else None, limit=_HEAD_BYTES,
    )  # fmt: skip
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        named = {
            "Host": parts.netloc,
            "User-Agent": f"vmtune/{__version__}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode("ascii") + body)
        await writer.drain()
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            version, status = head.split(b" ", 2)[:2]
            if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
                raise _Unsendable("the receiver does not speak HTTP")
            if not 100 <= int(status[:3]) < 200:  # 100 Continue goes before the answer
                return int(status[:3])
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                await writer.wait_closed()


async def _address(host: str, port: int, own_addresses: bool) -> str:
    """An address of *host*, where each of them may be sent to."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise _Unsendable(f"{host} has no address: {error.strerror}") from error
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for address in addresses if not own_addresses else ():
        why = why_not_there(address, is_own(address))
        if why:
            raise _Unsendable(
                f"refused to send to {host}: {why} (setting webhook_own_addresses allows it)"
            )
    return addresses[0]


def is_own(address: str) -> bool:
    """Whether *address* is one of this machine: only its own can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
