"""Commands of the monitor through libvirt: what they end with when there is no QEMU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.hypervisor.libvirt.connections import VM, Host, LibvirtError
from vmtune.errors import (
    CommandRefused,
    OutcomeUnknown,
    VmtuneError,
)
from vmtune.hypervisor.libvirt import errors as libvirt_errors
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING, LibvirtMonitor


class TestMonitor:
    """What a command ends with when there is no QEMU, or no longer."""

    @staticmethod
    async def refusal(command: str, number: int, active: bool) -> VmtuneError:
        def monitor(*_: object) -> str:
            raise LibvirtError(number, "domain is not running")

        host = Host()
        host.library.qemu.qemuMonitorCommand = monitor
        host.domain = SimpleNamespace(isActive=lambda: int(active))
        link = Link("x", host.open)
        try:
            with pytest.raises(VmtuneError) as refused:
                await LibvirtMonitor(link, VM).execute(command)
        finally:
            await link.close()
        return refused.value

    @pytest.mark.parametrize("command", ["query-migrate", "migrate-set-parameters"])
    @pytest.mark.parametrize("active", [True, False])
    async def test_a_command_that_was_never_sent_is_refused(
        self, command: str, active: bool
    ) -> None:
        """libvirt says so for a while before it says that the VM is not active."""
        error = await self.refusal(command, libvirt_errors.OPERATION_INVALID, active)
        assert isinstance(error, CommandRefused)
        assert error.problems[0].code == NOT_RUNNING

    async def test_a_change_that_qemu_died_of_may_have_been_made(self) -> None:
        error = await self.refusal("migrate-set-parameters", 1, active=False)
        assert isinstance(error, OutcomeUnknown)

    async def test_a_question_that_qemu_died_of_has_no_answer(self) -> None:
        error = await self.refusal("query-migrate", 1, active=False)
        assert error.problems[0].code == NOT_RUNNING

    async def test_the_vm_is_looked_up_once_for_a_connection(self) -> None:
        """And again where libvirt has refused a command of it."""
        host = Host()
        refuses = False

        def monitor(*_: object) -> str:
            if refuses:
                raise LibvirtError(libvirt_errors.OPERATION_TIMEOUT, "cannot acquire the lock")
            return '{"return": {}}'

        host.library.qemu.qemuMonitorCommand = monitor
        host.domain = SimpleNamespace(isActive=lambda: 1)
        link = Link("x", host.open)
        lent = LibvirtMonitor(link, VM)
        for _ in range(3):
            assert await lent.execute("query-migrate") == {}
        assert host.opened[0].looked_up == 1
        refuses = True
        with pytest.raises(VmtuneError):
            await lent.execute("query-migrate")
        refuses = False
        assert await lent.execute("query-migrate") == {}
        assert host.opened[0].looked_up == 2
        await link.close()

    async def test_libvirts_own_refusal_comes_as_it_is(self) -> None:
        error = await self.refusal("query-migrate", libvirt_errors.OPERATION_TIMEOUT, active=True)
        assert error.problems[0].code == "busy"
