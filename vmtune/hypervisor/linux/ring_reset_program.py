"""Asks the kernel whether KVM_RESET_DIRTY_RINGS ends early when a signal is pending.

Run as a program of its own, for it takes signals: ``python ring_reset_program.py [/dev/kvm]``
prints one JSON object, ``{"asked": bool, "ended_early": bool, "why_not": str}``. It needs nothing
but the standard library and an x86-64 host, makes a VM of one vCPU and 36 MiB that lives for some
30 ms, and leaves nothing behind.

The guest writes one byte to each of 8,192 pages and halts; its ring then holds as many entries.
They are handed back with one call, while a timer sends a signal every 30 microseconds. Kernels
before 6.16 hand all of them back; later ones stop at the first pending signal and return how far
they came ("KVM: Bail from the dirty ring reset flow if a signal is pending", 2025;
virt/kvm/dirty_ring.c).
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import signal
import struct
import sys

# linux/kvm.h
_CREATE_VM = 0xAE01
_CHECK_EXTENSION = 0xAE03
_GET_VCPU_MMAP_SIZE = 0xAE04
_CREATE_VCPU = 0xAE41
_SET_USER_MEMORY_REGION = 0x4020AE46
_SET_TSS_ADDR = 0xAE47
_RUN = 0xAE80
_SET_REGS = 0x4090AE82
_GET_SREGS = 0x8138AE83
_SET_SREGS = 0x4138AE84
_ENABLE_CAP = 0x4068AEA3
_RESET_DIRTY_RINGS = 0xAEC7
_CAP_DIRTY_LOG_RING = 192
_DIRTY_LOG_PAGE_OFFSET = 64
_EXIT_HLT = 5
_MEM_LOG_DIRTY_PAGES = 1
_DIRTY = 1
_HANDED_BACK = 2
_ENTRY_BYTES = 16

_PAGE_BYTES = 4096
_RING_ENTRIES = 65536
_PAGES = 8192
_FIRST_PAGE = 16
_MEMORY_BYTES = (_FIRST_PAGE + _PAGES) * _PAGE_BYTES
_CODE_AT = 0x1000
_TSS_AT = 0xFFFBD000
_SIGNAL_EVERY_S = 30e-6
_TRIES = 5

_CODE = (
    b"\xbf" + struct.pack("<I", _FIRST_PAGE * _PAGE_BYTES)  # start: mov edi, first page
    + b"\x89\x07"  # next: mov [edi], eax
    + b"\x81\xc7" + struct.pack("<I", _PAGE_BYTES)  # add edi, 4096
    + b"\x81\xff" + struct.pack("<I", _MEMORY_BYTES)  # cmp edi, end of memory
    + b"\x72\xf0"  # jb next
    + b"\xf4"  # hlt
    + b"\xeb\xe8"  # jmp start
)  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


def _ioctl(fd: int, request: int, argument: int | ctypes.Array[ctypes.c_char] = 0) -> int:
    value = ctypes.c_ulong(argument) if isinstance(argument, int) else argument
    result = int(_libc.ioctl(fd, ctypes.c_ulong(request), value))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _flat_segments(sregs: bytes) -> bytes:
    """32-bit protected mode with flat segments and no paging (struct kvm_sregs)."""
    changed = bytearray(sregs)
    for index in range(6):
        selector, kind = (8, 11) if index == 0 else (16, 3)
        fields = (0, 0xFFFFFFFF, selector, kind, 1, 0, 1, 1, 0, 1, 0, 0, 0)
        struct.pack_into("<QIHBBBBBBBBBB", changed, index * 24, *fields)
    (cr0,) = struct.unpack_from("<Q", changed, 224)
    struct.pack_into("<Q", changed, 224, cr0 | 1)
    return bytes(changed)


class _Guest:
    """A VM of one vCPU with a dirty ring."""

    def __init__(self, kvm: int) -> None:
        self._vm = _ioctl(kvm, _CREATE_VM)
        ring_bytes = _RING_ENTRIES * _ENTRY_BYTES
        enable = struct.pack("<II4Q64x", _CAP_DIRTY_LOG_RING, 0, ring_bytes, 0, 0, 0)
        _ioctl(self._vm, _ENABLE_CAP, ctypes.create_string_buffer(enable))
        _ioctl(self._vm, _SET_TSS_ADDR, _TSS_AT)
        self._memory = mmap.mmap(-1, _MEMORY_BYTES)
        self._memory[_CODE_AT : _CODE_AT + len(_CODE)] = _CODE
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        region = struct.pack("<IIQQQ", 0, _MEM_LOG_DIRTY_PAGES, 0, _MEMORY_BYTES, at)
        _ioctl(self._vm, _SET_USER_MEMORY_REGION, ctypes.create_string_buffer(region))
        self._vcpu = _ioctl(self._vm, _CREATE_VCPU)
        self._run = mmap.mmap(self._vcpu, _ioctl(kvm, _GET_VCPU_MMAP_SIZE))
        self._ring = mmap.mmap(self._vcpu, ring_bytes, offset=_DIRTY_LOG_PAGE_OFFSET * _PAGE_BYTES)
        sregs = ctypes.create_string_buffer(312)
        _ioctl(self._vcpu, _GET_SREGS, sregs)
        _ioctl(self._vcpu, _SET_SREGS, ctypes.create_string_buffer(_flat_segments(sregs.raw), 312))
        registers = struct.pack("<18Q", *([0] * 16), _CODE_AT, 2)
        _ioctl(self._vcpu, _SET_REGS, ctypes.create_string_buffer(registers, 144))
        self._next = 0

    def write_all_pages(self) -> int:
        """Run until it halts; how many entries it left in its ring, now marked as read."""
        _ioctl(self._vcpu, _RUN)
        (reason,) = struct.unpack_from("<I", self._run, 8)
        if reason != _EXIT_HLT:
            raise OSError(0, f"the guest stopped for reason {reason}, not at its end")
        count = 0
        while count < _RING_ENTRIES:
            at = (self._next % _RING_ENTRIES) * _ENTRY_BYTES
            (flags,) = struct.unpack_from("<I", self._ring, at)
            if not flags & _DIRTY:
                break
            struct.pack_into("<I", self._ring, at, _HANDED_BACK)
            self._next += 1
            count += 1
        return count

    def hand_back(self) -> int:
        """KVM_RESET_DIRTY_RINGS: how many entries the kernel took."""
        return _ioctl(self._vm, _RESET_DIRTY_RINGS)


def _ends_early(guest: _Guest) -> bool:
    for _ in range(_TRIES):
        count = guest.write_all_pages()
        signal.setitimer(signal.ITIMER_REAL, _SIGNAL_EVERY_S, _SIGNAL_EVERY_S)
        try:
            taken = guest.hand_back()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if taken < count:
            return True
    return False


def ask(path: str) -> dict[str, bool | str]:
    """What the kernel does; ``asked`` is false where it could not be tried, with the reason."""
    if platform.machine() != "x86_64":
        return {"asked": False, "ended_early": False, "why_not": "it can be asked on x86-64 only"}
    try:
        kvm = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        largest = _ioctl(kvm, _CHECK_EXTENSION, _CAP_DIRTY_LOG_RING)
        if largest < _RING_ENTRIES * _ENTRY_BYTES:
            why = f"KVM's largest dirty ring has {largest // _ENTRY_BYTES} entries"
            return {"asked": False, "ended_early": False, "why_not": why}
        early = _ends_early(_Guest(kvm))
    except OSError as error:
        return {"asked": False, "ended_early": False, "why_not": error.strerror or str(error)}
    return {"asked": True, "ended_early": early, "why_not": ""}


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, lambda *_: None)
    print(json.dumps(ask(sys.argv[1] if len(sys.argv) > 1 else "/dev/kvm")))
