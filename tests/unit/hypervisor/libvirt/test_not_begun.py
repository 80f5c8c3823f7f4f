"""A migration between libvirt's call and QEMU's setup, looked at by several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from vmtune.hypervisor.libvirt.migrating.migration import LibvirtMigration
from vmtune.hypervisor.libvirt.migrating.not_begun import NotBegun
from vmtune.model.migration.record import QemuStatus, Snapshot

VM = UUID("09c0f619-80b8-5779-af9e-2b2ab883721e")
ACTIVE = {"status": "active", "ram": {"remaining": 1}}
EARLIER = {"status": "failed"}


class Daemon:
    """QEMU and libvirt: each question waits until ``answer`` lets it."""

    def __init__(self, reply: dict[str, Any], job_ms: int | None = 0) -> None:
        self.reply = reply
        self.job_ms = job_ms
        self.answer = asyncio.Event()
        self.while_queried: Callable[[], None] = lambda: None
        self.while_asked: Callable[[], None] = lambda: None

    async def query(self) -> dict[str, Any]:
        self.while_queried()
        return self.reply

    async def ask_job(self) -> int | None:
        await self.answer.wait()
        self.while_asked()
        return self.job_ms

    async def look(self, pending: NotBegun) -> Snapshot:
        return await pending.look(VM, self.query, self.ask_job, 7)


@pytest.fixture
def pending() -> NotBegun:
    return NotBegun()


async def test_looks_that_overlap_all_see_it_begin(pending: NotBegun) -> None:
    pending.add(VM, LibvirtMigration(Snapshot(QemuStatus.FAILED)))
    daemon = Daemon(ACTIVE, job_ms=None)
    looks = [asyncio.create_task(daemon.look(pending)) for _ in range(3)]
    await asyncio.sleep(0)
    daemon.answer.set()
    assert {seen.status for seen in await asyncio.gather(*looks)} == {QemuStatus.ACTIVE}


async def test_a_look_at_one_does_not_forget_the_next(pending: NotBegun) -> None:
    """The first ends and another is begun while a look at the first waits for libvirt."""
    pending.add(VM, LibvirtMigration(Snapshot(QemuStatus.NONE)))
    daemon = Daemon(EARLIER)
    daemon.answer.set()
    second = LibvirtMigration(Snapshot(QemuStatus.FAILED))
    daemon.while_asked = lambda: pending.add(VM, second)
    assert (await daemon.look(pending)).status is QemuStatus.FAILED
    daemon.while_asked = lambda: None
    assert (await daemon.look(pending)).status is QemuStatus.SETUP
    assert second.begun


async def test_one_that_ended_while_qemu_was_asked_did_begin(pending: NotBegun) -> None:
    """QEMU answered before it began; it had ended by the time libvirt was asked."""
    own = LibvirtMigration(Snapshot(QemuStatus.FAILED))
    pending.add(VM, own)
    daemon = Daemon(EARLIER, job_ms=None)
    daemon.answer.set()
    daemon.while_queried = own.let_go
    assert (await daemon.look(pending)).status is QemuStatus.SETUP
    assert own.begun


async def test_one_that_had_ended_before_qemu_was_asked_never_began(pending: NotBegun) -> None:
    own = LibvirtMigration(Snapshot(QemuStatus.FAILED))
    own.let_go()
    pending.add(VM, own)
    daemon = Daemon(EARLIER, job_ms=None)
    daemon.answer.set()
    assert (await daemon.look(pending)).status is QemuStatus.FAILED
    assert not own.begun


async def test_anothers_that_libvirt_prepares_is_in_setup(pending: NotBegun) -> None:
    daemon = Daemon(EARLIER)
    daemon.answer.set()
    assert (await daemon.look(pending)).status is QemuStatus.SETUP
    daemon.job_ms = None
    assert (await daemon.look(pending)).status is QemuStatus.FAILED


async def test_one_that_ended_is_forgotten_with_its_vm_and_not_before(pending: NotBegun) -> None:
    under_way = UUID(int=1)
    own = LibvirtMigration(Snapshot(QemuStatus.FAILED))
    pending.add(VM, own)
    pending.add(under_way, LibvirtMigration())
    own.let_go()
    pending.keep({VM})
    assert pending.known == {VM, under_way}
    pending.keep(())
    assert pending.known == {under_way}
