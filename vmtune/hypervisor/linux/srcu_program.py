"""Times updates of a VM's memory map while its vCPUs run: each waits for SRCU grace periods.

Run as a program of its own, for it takes signals: ``python srcu_program.py KVM UPDATES VCPUS
SECONDS`` prints one JSON object, ``{"asked": bool, "why_not": str, "idle_ns": [[adds], [deletes]],
"running_ns": [[adds], [deletes]]}``. It needs nothing but the standard library and an x86-64 host,
makes a VM of 2 MiB, and leaves nothing behind.

A memory slot is added and deleted again, UPDATES times in all or until SECONDS are over: at first
with vCPUs that have never run, a tenth of the updates, then while every vCPU spins. Adding a slot
waits for one grace period, deleting it for two (kvm_set_memslot and kvm_swap_active_memslots in
virt/kvm/kvm_main.c, synchronize_srcu_expedited).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import struct
import sys
import threading
import time

# linux/kvm.h
_CREATE_VM = 0xAE01
_GET_VCPU_MMAP_SIZE = 0xAE04
_CREATE_VCPU = 0xAE41
_SET_USER_MEMORY_REGION = 0x4020AE46
_SET_TSS_ADDR = 0xAE47
_RUN = 0xAE80
_SET_REGS = 0x4090AE82
_GET_SREGS = 0x8138AE83
_SET_SREGS = 0x4138AE84
_IMMEDIATE_EXIT_AT = 1

_MEMORY_BYTES = 2 << 20
_CODE_AT = 0x1000
_TSS_AT = 0xFFFBD000
_SLOT = 1
_SLOT_AT = 16 << 20
_IDLE_SHARE = 10
_CODE = b"\xeb\xfe"  # jmp to itself

_libc = ctypes.CDLL(None, use_errno=True)


def _ioctl(fd: int, request: int, argument: int | ctypes.Array[ctypes.c_char] = 0) -> int:
    value = ctypes.c_ulong(argument) if isinstance(argument, int) else argument
    result = int(_libc.ioctl(fd, ctypes.c_ulong(request), value))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class _Vcpu:
    """A vCPU that spins, in a thread of its own."""

    def __init__(self, kvm: int, vm: int, number: int) -> None:
        self._fd = _ioctl(vm, _CREATE_VCPU, number)
        self._run = mmap.mmap(self._fd, _ioctl(kvm, _GET_VCPU_MMAP_SIZE))
        sregs = ctypes.create_string_buffer(312)
        _ioctl(self._fd, _GET_SREGS, sregs)
        # Real mode, with a code segment at 0 (struct kvm_sregs and kvm_segment).
        struct.pack_into("<QIH", sregs, 0, 0, 0xFFFF, 0)
        _ioctl(self._fd, _SET_SREGS, sregs)
        registers = struct.pack("<18Q", *([0] * 16), _CODE_AT, 2)
        _ioctl(self._fd, _SET_REGS, ctypes.create_string_buffer(registers, 144))
        self._over = False
        self.failed = ""
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def _spin(self) -> None:
        while not self._over:
            try:
                _ioctl(self._fd, _RUN)
            except OSError as error:
                if error.errno != errno.EINTR:
                    self.failed = error.strerror or str(error)
                    return
                continue
            (reason,) = struct.unpack_from("<I", self._run, 8)
            self.failed = f"a vCPU stopped for reason {reason}, and was to spin"
            return

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over = True
        self._run[_IMMEDIATE_EXIT_AT] = 1
        while self._thread.is_alive():
            with contextlib.suppress(ProcessLookupError):
                signal.pthread_kill(self._thread.ident or 0, signal.SIGUSR1)
            self._thread.join(0.01)


class _Vm:
    def __init__(self, kvm: int, vcpus: int) -> None:
        self._fd = _ioctl(kvm, _CREATE_VM)
        _ioctl(self._fd, _SET_TSS_ADDR, _TSS_AT)
        self._memory = mmap.mmap(-1, _MEMORY_BYTES)
        self._memory[_CODE_AT : _CODE_AT + len(_CODE)] = _CODE
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._set_slot(0, 0, _MEMORY_BYTES)
        self.vcpus = [_Vcpu(kvm, self._fd, number) for number in range(vcpus)]

    def _set_slot(self, slot: int, at: int, size: int) -> None:
        region = struct.pack("<IIQQQ", slot, 0, at, size, self._at)
        _ioctl(self._fd, _SET_USER_MEMORY_REGION, ctypes.create_string_buffer(region))

    def updates(self, count: int, ends: float) -> tuple[list[int], list[int]]:
        """Nanoseconds of each addition and of each deletion."""
        adds: list[int] = []
        deletes: list[int] = []
        clock = time.perf_counter_ns
        while len(adds) + len(deletes) < count and (not adds or time.monotonic() < ends):
            began = clock()
            self._set_slot(_SLOT, _SLOT_AT, _MEMORY_BYTES)
            between = clock()
            self._set_slot(_SLOT, _SLOT_AT, 0)
            adds.append(between - began)
            deletes.append(clock() - between)
        return adds, deletes


def measure(path: str, count: int, vcpus: int, seconds: float) -> dict[str, object]:
    """What it took; ``asked`` is false where it could not be tried, with the reason."""
    nothing: list[list[int]] = [[], []]
    answer: dict[str, object] = {"asked": False, "idle_ns": nothing, "running_ns": nothing}
    if platform.machine() != "x86_64":
        return {**answer, "why_not": "it can be measured on x86-64 only"}
    try:
        vm = _Vm(os.open(path, os.O_RDWR | os.O_CLOEXEC), vcpus)
        ends = time.monotonic() + seconds
        idle = vm.updates(max(2, count // _IDLE_SHARE), time.monotonic() + seconds / _IDLE_SHARE)
        for vcpu in vm.vcpus:
            vcpu.start()
        try:
            running = vm.updates(count, ends)
            failed = next((vcpu.failed for vcpu in vm.vcpus if vcpu.failed), "")
        finally:
            for vcpu in vm.vcpus:
                vcpu.end()
    except OSError as error:
        return {**answer, "why_not": error.strerror or str(error)}
    if failed:
        return {**answer, "why_not": failed}
    return {"asked": True, "why_not": "", "idle_ns": idle, "running_ns": running}


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: None)
    kvm_path, updates, vcpu_count, most_s = sys.argv[1:]
    print(json.dumps(measure(kvm_path, int(updates), int(vcpu_count), float(most_s))))
