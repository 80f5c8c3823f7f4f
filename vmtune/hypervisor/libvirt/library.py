"""libvirt-python, imported when it is first needed, and its event loop."""

from __future__ import annotations

import functools
import threading
import time
from types import ModuleType

from vmtune.errors import CommandRefused, SetupError


class Library:
    """The imported library. The only place that knows where its names are.

    :param libvirt: the module ``libvirt``; *qemu* the module ``libvirt_qemu``.
    """

    def __init__(self, libvirt: ModuleType, qemu: ModuleType) -> None:
        self.libvirt = libvirt
        self.qemu = qemu
        self.error: type[Exception] = libvirt.libvirtError

    def constant(self, name: str) -> int:
        """A constant by libvirt's name.

        :raise CommandRefused: the client library here is too old to have it.
        """
        value = getattr(self.libvirt, name, None)
        if not isinstance(value, int):
            raise CommandRefused(
                f"the libvirt client library of vmtune does not know {name}",
                code="needs_newer_libvirt",
                remedy="install libvirt-python on a newer libvirt",
            )
        return value

    def flags(self, *names: str) -> int:
        """Several constants, or-ed."""
        return functools.reduce(lambda flags, name: flags | self.constant(name), names, 0)


@functools.cache
def load_library() -> Library:
    """Import libvirt-python and start its event loop, once in a process.

    The loop runs in a daemon thread for as long as the process: libvirt offers no way to
    give it up again.

    :raise SetupError: libvirt-python is not installed; what to install.
    """
    try:
        import libvirt  # noqa: PLC0415 - not needed without libvirt hosts
        import libvirt_qemu  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"libvirt-python cannot be imported: {error}",
            code="no_libvirt_python",
            remedy="install the packages libvirt-dev, pkg-config, gcc and python3-dev, then "
            "`pip install libvirt-python`",
        ) from error
    # Else libvirt prints every error to stderr, besides raising it.
    libvirt.registerErrorHandler(lambda *_: None, None)
    libvirt.virEventRegisterDefaultImpl()

    def run() -> None:
        while True:
            try:
                libvirt.virEventRunDefaultImpl()
            except libvirt.libvirtError:
                time.sleep(0.1)  # out of memory or descriptors: do not spin

    threading.Thread(target=run, name="libvirt-events", daemon=True).start()
    return Library(libvirt, libvirt_qemu)
