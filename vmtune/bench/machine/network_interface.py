"""The network interface that traffic to an address takes, and what it can do.

Asked of the kernel itself (rtnetlink and the ethtool ioctl), which answers for the network
namespace that a socket was made in: /sys/class/net shows only the mounter's.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_SIOCGIFFLAGS, _SIOCGIFMTU, _SIOCETHTOOL = 0x8913, 0x8921, 0x8946  # linux/sockios.h
_IFF_LOOPBACK = 0x8
_GSET, _GDRVINFO, _GSTRINGS = 0x01, 0x03, 0x1B  # linux/ethtool.h
_GSSET_INFO, _GFEATURES, _SS_FEATURES = 0x37, 0x3A, 4
_STRING_BYTES = 32
_UNKNOWN_SPEED = 0xFFFFFFFF
_CLONE_NEWNET = 0x40000000
_RTM_GETROUTE, _NLM_F_REQUEST = 26, 1  # linux/rtnetlink.h, linux/netlink.h
_RTA_DST, _RTA_OIF = 1, 4

OFFLOADS = (
    "rx-checksum",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "tx-gso-partial",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-hashing",
    "tx-nocache-copy",
    "hw-tc-offload",
    "tls-hw-tx-offload",
    "tls-hw-rx-offload",
)
"""The kernel's names of what a card may do for TCP (``ethtool -k`` groups some of them)."""


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface.

    :param driver: ``virtio_net``, ``mlx5_core``, ``veth``; empty if it reports none.
    :param speed_mbit: of a link that is up; None if unknown.
    :param offloads: those of OFFLOADS that it knows, on or off.
    """

    name: str
    loopback: bool
    mtu: int | None = None
    driver: str = ""
    driver_version: str = ""
    firmware: str = ""
    speed_mbit: int | None = None
    offloads: Mapping[str, bool] = field(default_factory=dict)


def interface_to(address: str) -> Interface | None:
    """The interface that packets to *address* leave by; None where there is no route.

    :param address: an IP address, or a name that resolves to one.
    """
    try:
        index = _route(_resolved(address))
        if index is None:
            return None
        name = socket.if_indextoname(index)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
            return _describe(asking, name)
    except OSError:
        return None


def in_namespace(namespace: Path, look: Callable[[], _T]) -> _T:
    """What *look* returns in another network namespace: its sockets and its /proc/sys/net are
    that namespace's.

    :param namespace: a file of it, as below /run/netns.
    :raise OSError: it cannot be entered, which needs CAP_SYS_ADMIN.
    """

    def enter_and_look() -> _T:
        _enter(namespace)
        return look()

    # A thread of its own: one that has entered a namespace is of no use to others.
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(enter_and_look).result()


def _enter(namespace: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "cannot enter the network namespace")
    finally:
        os.close(descriptor)


def _resolved(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
        return ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])


def route_request(destination: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    """The netlink message that requests the route to an address."""
    family = socket.AF_INET if destination.version == 4 else socket.AF_INET6
    packed = destination.packed
    attribute = struct.pack("=HH", 4 + len(packed), _RTA_DST) + packed
    route = struct.pack("=8BI", family, 8 * len(packed), 0, 0, 0, 0, 0, 0, 0)
    length = 16 + len(route) + len(attribute)
    return struct.pack("=IHHII", length, _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0) + route + attribute


def outgoing_index(reply: bytes) -> int | None:
    """The interface's number in the kernel's answer; None where there is no route."""
    if len(reply) < 16:
        return None
    length, kind = struct.unpack_from("=IH", reply)
    if kind == 2:  # NLMSG_ERROR
        return None
    at, end = 16 + 12, min(length, len(reply))
    while at + 4 <= end:
        size, name = struct.unpack_from("=HH", reply, at)
        if size < 4 or at + size > end:
            return None
        if name == _RTA_OIF and size >= 8:
            return int(struct.unpack_from("=I", reply, at + 4)[0])
        at += (size + 3) & ~3
    return None


def _route(destination: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int | None:
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(2)
        kernel.bind((0, 0))
        kernel.send(route_request(destination))
        return outgoing_index(kernel.recv(65536))


def _describe(asking: socket.socket, name: str) -> Interface:
    def ioctl(request: int, data: bytes) -> bytes:
        sent = struct.pack("16s", name.encode()) + data
        return fcntl.ioctl(asking, request, sent.ljust(40, b"\0"))

    def ethtool(data: bytes) -> bytes:
        """The answer, which the kernel writes over the question; empty where it refuses."""
        buffer = array.array("B", data)
        try:
            ioctl(_SIOCETHTOOL, struct.pack("@P", buffer.buffer_info()[0]))
        except OSError:
            return b""
        return buffer.tobytes()

    flags = struct.unpack_from("=H", ioctl(_SIOCGIFFLAGS, b""), 16)[0]
    driver, version, firmware = driver_of(ethtool(struct.pack("=I192x", _GDRVINFO)))
    return Interface(
        name=name,
        loopback=bool(flags & _IFF_LOOPBACK),
        mtu=struct.unpack_from("=i", ioctl(_SIOCGIFMTU, b""), 16)[0],
        driver=driver,
        driver_version=version,
        firmware=firmware,
        speed_mbit=speed_of(ethtool(struct.pack("=I40x", _GSET))),
        offloads=_features(ethtool),
    )


def driver_of(info: bytes) -> tuple[str, str, str]:
    """Driver, its version and the card's firmware, of a struct ethtool_drvinfo."""
    if len(info) < 4 + 3 * _STRING_BYTES:
        return "", "", ""
    driver, version, firmware = (
        _string(info[4 + n * _STRING_BYTES :][:_STRING_BYTES]) for n in range(3)
    )
    # A driver that has no version of its own repeats the kernel's, which is recorded elsewhere.
    return driver, "" if version == os.uname().release else version, firmware


def speed_of(settings: bytes) -> int | None:
    """Mbit/s of a struct ethtool_cmd; None where the link is down or has no speed."""
    if len(settings) < 30:
        return None
    low, high = struct.unpack_from("=H", settings, 12)[0], struct.unpack_from("=H", settings, 28)[0]
    speed = low | high << 16
    return None if speed in (0, 0xFFFF, _UNKNOWN_SPEED) else speed


def _features(ethtool: Callable[[bytes], bytes]) -> dict[str, bool]:
    asked = ethtool(struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _SS_FEATURES, 0))
    count = struct.unpack_from("=I", asked, 16)[0] if len(asked) >= 20 else 0
    if not 0 < count <= 1024:
        return {}
    strings = ethtool(struct.pack("=III", _GSTRINGS, _SS_FEATURES, count) + bytes(count * 32))
    words = (count + 31) // 32
    bits = ethtool(struct.pack("=II", _GFEATURES, words) + bytes(words * 16))
    return offloads_of(strings, bits)


def offloads_of(strings: bytes, bits: bytes) -> dict[str, bool]:
    """Which of OFFLOADS are active: of structs ethtool_gstrings and ethtool_gfeatures."""
    names = [_string(strings[at : at + _STRING_BYTES]) for at in range(12, len(strings), 32)]
    found: dict[str, bool] = {}
    for index, name in enumerate(names):
        at = 8 + index // 32 * 16  # words of available, requested, active, never changed
        if name not in OFFLOADS or at + 16 > len(bits):
            continue
        available, _, active, _ = struct.unpack_from("=4I", bits, at)
        if (available | active) >> index % 32 & 1:
            found[name] = bool(active >> index % 32 & 1)
    return found


def _string(padded: bytes) -> str:
    return padded.partition(b"\0")[0].decode("ascii", "replace").strip()
