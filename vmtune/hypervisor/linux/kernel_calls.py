"""Questions to the kernel that no file answers: what KVM and network cards are able to."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

from vmtune.model.doctor.facts import KvmSeen

# linux/kvm.h: _IO(0xAE, 0x00), _IO(0xAE, 0x03) and the capabilities' numbers.
_KVM_GET_API_VERSION = 0xAE00
_KVM_CHECK_EXTENSION = 0xAE03
_KVM_API_VERSION = 12
_KVM_CAP_DIRTY_LOG_RING = 192
_KVM_CAP_DIRTY_LOG_RING_ACQ_REL = 223
# linux/sockios.h and linux/ethtool.h.
_SIOCETHTOOL = 0x8946
_ETHTOOL_GSG = 0x18
_IFNAMSIZ = 16


def ask_kvm(path: Path) -> KvmSeen:
    """What KVM says of itself. Opening it starts nothing."""
    try:
        kvm = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return KvmSeen(present=False)
    except OSError as error:
        why = error.strerror or errno.errorcode.get(error.errno or 0, "it cannot be opened")
        return KvmSeen(present=True, why_not=why)
    try:
        version = fcntl.ioctl(kvm, _KVM_GET_API_VERSION, 0)
        if version != _KVM_API_VERSION:
            return KvmSeen(present=True, why_not=f"it speaks version {version} of its interface")
        sizes = [
            fcntl.ioctl(kvm, _KVM_CHECK_EXTENSION, number)
            for number in (_KVM_CAP_DIRTY_LOG_RING, _KVM_CAP_DIRTY_LOG_RING_ACQ_REL)
        ]
    except OSError as error:
        return KvmSeen(present=True, why_not=f"it is not KVM: {error.strerror}")
    finally:
        os.close(kvm)
    return KvmSeen(present=True, dirty_ring_bytes=max(sizes))


def ask_scatter_gather(nic: str) -> bool | None:
    """Whether a network card gathers what it sends (NETIF_F_SG); None where it does not say."""
    if len(nic.encode()) >= _IFNAMSIZ:
        return None
    # struct ethtool_value {u32 cmd, data}, and struct ifreq with a pointer to it.
    value = array.array("I", [_ETHTOOL_GSG, 0])
    request = struct.pack(f"{_IFNAMSIZ}sP16x", nic.encode(), value.buffer_info()[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    except OSError:
        return None
    return bool(value[1])
