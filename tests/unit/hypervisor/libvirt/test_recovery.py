"""A resumption of post-copy that libvirt refuses is asked for once more while it can help."""

from __future__ import annotations

import pytest

from vmtune.errors import CommandRefused, VmtuneError
from vmtune.hypervisor.libvirt.migrating import recovery
from vmtune.model.migration.record import QemuStatus, Snapshot


class Resumption:
    """Fails so often; QEMU is then in a state."""

    def __init__(self, *failures: VmtuneError, then: QemuStatus) -> None:
        self.failures = list(failures)
        self.then = then
        self.tries = 0

    async def resume(self) -> None:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)

    async def look(self) -> Snapshot:
        return Snapshot(self.then)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_TRIES_AGAIN_AFTER_S", 0.0)


async def test_refused_while_it_is_still_paused_it_is_tried_again() -> None:
    late = CommandRefused("job 'migration in' failed in post-copy phase", field="migration")
    it = Resumption(late, then=QemuStatus.POSTCOPY_PAUSED)
    await recovery.in_two_tries(it.resume, it.look)
    assert it.tries == 2


async def test_refused_twice_the_second_refusal_is_told() -> None:
    refusals = [CommandRefused(text, field="migration") for text in ("first", "second", "third")]
    it = Resumption(*refusals, then=QemuStatus.POSTCOPY_PAUSED)
    with pytest.raises(CommandRefused, match="second"):
        await recovery.in_two_tries(it.resume, it.look)
    assert it.tries == 2


async def test_what_goes_on_is_not_resumed_again() -> None:
    it = Resumption(CommandRefused("no", field="migration"), then=QemuStatus.POSTCOPY_ACTIVE)
    with pytest.raises(CommandRefused, match="no"):
        await recovery.in_two_tries(it.resume, it.look)
    assert it.tries == 1
