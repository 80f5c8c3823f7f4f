"""Setting values in a QEMU over any monitor: a QMP socket, libvirt or a fake."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from vmtune.errors import CommandRefused, InvalidInput
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.names import MAIN_LOOP_ID
from vmtune.hypervisor.qemu.packs import PACK_KINDS, set_values
from vmtune.hypervisor.qemu.probe import KnownObjects, find_main_loop
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.migration.record import QemuStatus, read_query_migrate
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import QmpKind, Value


def _nothing() -> None:
    pass


async def write(
    monitor: Monitor,
    changes: Sequence[Change],
    tunables: TunableRegistry,
    known: KnownObjects | None = None,
    sent: Callable[[], None] = _nothing,
) -> None:
    """Set values in the order given. Neighbours of one kind go together: parameters and
    capabilities in one command each, which QEMU executes as a whole or not at all;
    object properties in one go. None waits for the answer to what goes before it.

    Where something is refused, the rest may be set or not. A thread-pool limit that QEMU refused
    is restored here, since QEMU keeps it although it refuses (util/async.c).

    :param known: what was read of this QEMU just before; None to ask.
    :param sent: is called once all of it is on its way, where that is known before the answers
        are there: a command that is issued then reaches QEMU behind it.
    :raise CommandRefused: QEMU refused, with the field ``values.<tunable>`` where one is
        to blame, of the first that it refused; code ``migration_active`` where QEMU would not
        refuse but crash.
    :raise SetupError: a tunable of a pack that is not loaded; nothing is set.
    :raise InvalidInput: a change that no monitor can make (boot and host routes).
    :raise VmtuneError: as :meth:`Monitor.execute` does.
    """
    for change in changes:
        _check(change, changes, tunables)
    await _refuse_while_migrating(monitor, changes)
    groups = [(kind, list(group)) for kind, group in itertools.groupby(changes, _group)]
    waiting = len(groups)

    def issued() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            sent()

    await _answers(
        *(_set_group(monitor, kind, same, tunables, known, issued) for kind, same in groups),
        refusals=False,
    )


def _set_group(
    monitor: Monitor,
    kind: QmpKind | None,
    changes: Sequence[Change],
    tunables: TunableRegistry,
    known: KnownObjects | None,
    issued: Callable[[], None],
) -> Coroutine[Any, Any, None]:
    match kind:
        case QmpKind.CAPABILITY:
            return _set_capabilities(monitor, changes, issued)
        case QmpKind.PARAMETER:
            return _set_parameters(monitor, changes, issued)
        case QmpKind.QOM:
            return set_values(monitor, changes, tunables)
        case _:
            return _set_properties(monitor, changes, known or KnownObjects(), issued)


def _group(change: Change) -> QmpKind | None:
    """Changes of one group go together; all properties of iothreads and the main loop are one,
    all that packs add another."""
    kind = _kind(change)
    if kind in PACK_KINDS:
        return QmpKind.QOM
    return kind if kind in (QmpKind.CAPABILITY, QmpKind.PARAMETER) else None


def _kind(change: Change) -> QmpKind | None:
    """Which command sets it; ``tls`` is the credentials parameter, set or empty."""
    if change.tunable == "tls":
        return QmpKind.PARAMETER
    if change.tunable not in BUILT_IN:
        return QmpKind.QOM  # a pack's, which are set alike
    qmp = BUILT_IN[change.tunable].qmp
    return qmp.kind if qmp else None


_SETTABLE = (
    QmpKind.CAPABILITY,
    QmpKind.PARAMETER,
    QmpKind.IOTHREAD,
    QmpKind.MAIN_LOOP,
    *PACK_KINDS,
)


def _check(change: Change, changes: Sequence[Change], tunables: TunableRegistry) -> None:
    row = tunables.row(change.tunable)
    if _kind(change) not in _SETTABLE:
        raise InvalidInput(
            f"{change.tunable} cannot be set in a running QEMU",
            field=f"values.{change.tunable}",
            remedy=f"it takes the route {row.route.value}",
        )
    if change.tunable == "tls" and change.value is True:
        if not any(other.tunable == "tls_creds" for other in changes):
            raise CommandRefused(
                "QEMU has no switch for TLS but the id of a credentials object",
                field="values.tls",
                code="tls_creds_missing",
                remedy="set tls_creds",
            )


async def _refuse_while_migrating(monitor: Monitor, changes: Sequence[Change]) -> None:
    """QEMU sizes its multifd threads at a migration's start and then trusts the parameters:
    changing them meanwhile crashes it (seen on 7.2 and 10.0), and it does not check."""
    for change in changes:
        if _kind(change) is not QmpKind.PARAMETER or not _is_setup_only(change):
            continue
        reply = await monitor.execute("query-migrate")
        with reading_reply("its migration"):
            status = read_query_migrate(reply).status
        if status.running and not await _only_listens(monitor, status):
            raise CommandRefused(
                f"a migration is {status.value}, and QEMU would crash",
                field=f"values.{change.tunable}",
                code="migration_active",
                remedy="wait until it has ended, or abort it",
            )
        return


async def _only_listens(monitor: Monitor, status: QemuStatus) -> bool:
    """Whether QEMU waits for a migration that has not called yet: it may still be changed.
    QEMU 10 calls that setup too, also after it failed to listen."""
    if status is not QemuStatus.SETUP:
        return False
    return bool((await monitor.execute("query-status"))["status"] == "inmigrate")


def _is_setup_only(change: Change) -> bool:
    return (_qmp_name(change) or change.tunable).startswith(("multifd-", "tls"))


async def _set_capabilities(
    monitor: Monitor, changes: Sequence[Change], issued: Callable[[], None]
) -> None:
    states = {_qmp_name(c): c.value for c in changes}
    rows = [{"capability": name, "state": state} for name, state in states.items()]
    command = monitor.execute("migrate-set-capabilities", {"capabilities": rows})
    (answer,) = await _answers(command, issued=issued)
    if isinstance(answer, CommandRefused):
        raise blamed(answer, changes) from answer


async def _set_parameters(
    monitor: Monitor, changes: Sequence[Change], issued: Callable[[], None]
) -> None:
    arguments: dict[str, Value] = {}
    for change in changes:
        if change.tunable != "tls":
            arguments[_qmp_name(change)] = change.value
        elif change.value is False:
            arguments |= {"tls-creds": "", "tls-hostname": ""}
    if not arguments:
        issued()
        return
    command = monitor.execute("migrate-set-parameters", arguments)
    (answer,) = await _answers(command, issued=issued)
    if isinstance(answer, CommandRefused):
        raise blamed(answer, changes) from answer


@dataclass(frozen=True, slots=True)
class _Setting:
    """A property of an object that a change sets."""

    change: Change
    path: str

    @property
    def qom_path(self) -> dict[str, Value]:
        return {"path": self.path, "property": _qmp_name(self.change)}

    @property
    def key(self) -> tuple[str, str]:
        return self.path, _qmp_name(self.change)

    @property
    def is_pool(self) -> bool:
        return _qmp_name(self.change).startswith("thread-pool-")


async def _set_properties(
    monitor: Monitor, changes: Sequence[Change], known: KnownObjects, issued: Callable[[], None]
) -> None:
    settings = await _settings(monitor, changes, known.main_loop)
    pools = [s for s in settings if s.is_pool and s.key not in known.pools]
    # First read the value to restore: QEMU keeps a thread-pool limit that it refuses.
    gets = [monitor.execute("qom-get", pool.qom_path) for pool in pools]
    sets = [monitor.execute("qom-set", {**s.qom_path, "value": s.change.value}) for s in settings]
    replies = await _answers(*gets, *sets, issued=issued)
    before, answers = replies[: len(gets)], replies[len(gets) :]
    refused = [
        (setting, answer)
        for setting, answer in zip(settings, answers, strict=True)
        if isinstance(answer, CommandRefused)
    ]
    if not refused:
        return
    kept = {**known.pools, **{s.key: value for s, value in zip(pools, before, strict=True)}}
    await _answers(
        *(
            monitor.execute("qom-set", {**setting.qom_path, "value": kept[setting.key]})
            for setting, _ in reversed(refused)
            if isinstance(kept.get(setting.key), int)
        )
    )
    setting, refusal = refused[0]
    raise blamed(refusal, [setting.change]) from refusal


async def _settings(monitor: Monitor, changes: Sequence[Change], main_loop: str) -> list[_Setting]:
    """The objects that *changes* are for.

    The main loop has settings only once there is an object for it, which cannot be deleted
    again: it is made when a value is to be set that is not QEMU's default.
    """
    iothreads: list[str] = []
    if any(_kind(c) is QmpKind.IOTHREAD and not c.owner for c in changes):
        iothreads = [row["id"] for row in await monitor.execute("query-iothreads")]
    unusual = [c for c in changes if _kind(c) is QmpKind.MAIN_LOOP]
    if unusual:
        main_loop = main_loop or await find_main_loop(monitor)
        unusual = [c for c in unusual if c.value != BUILT_IN[c.tunable].default]
    if unusual and not main_loop:
        main_loop = MAIN_LOOP_ID
        try:
            await monitor.execute("object-add", {"qom-type": "main-loop", "id": main_loop})
        except CommandRefused as refusal:
            raise blamed(refusal, unusual) from refusal
    settings: list[_Setting] = []
    for change in changes:
        owners = [change.owner] if change.owner else iothreads
        if _kind(change) is QmpKind.MAIN_LOOP:
            owners = [main_loop] if main_loop else []
        settings += (_Setting(change, f"/objects/{owner}") for owner in owners)
    return settings


async def _answers(
    *commands: Coroutine[Any, Any, Any],
    issued: Callable[[], None] = _nothing,
    refusals: bool = True,
) -> list[Any]:  # any JSON, or the refusal
    """What QEMU answers to commands that are sent without waiting for each other.

    :param issued: is called once all have begun.
    :param refusals: return refusals among the answers; else raise the first of them.
    :raise VmtuneError: anything but a refusal: a lost connection outweighs one.
    """
    tasks = [asyncio.ensure_future(command) for command in commands]
    await asyncio.sleep(0)  # each task's first step issues its command
    issued()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, CommandRefused):
            raise answer
    for answer in answers:
        if isinstance(answer, CommandRefused) and not refusals:
            raise answer
    return answers


def _qmp_name(change: Change) -> str:
    """QEMU's name of one of vmtune's own tunables; empty where QEMU has none for it."""
    qmp = BUILT_IN[change.tunable].qmp
    return qmp.name if qmp else ""


def blamed(refusal: CommandRefused, changes: Sequence[Change]) -> CommandRefused:
    """*refusal* with the field of the tunable that QEMU's text names, where it is clear."""
    suspects = {c.tunable for c in changes if len(changes) == 1 or _names(refusal.message, c)}
    field = f"values.{suspects.pop()}" if len(suspects) == 1 else ""
    problem = refusal.problems[0]
    return CommandRefused(refusal.message, field=field, code=problem.code, remedy=problem.remedy)


def _names(text: str, change: Change) -> bool:
    """Whether QEMU's text has the setting's name; some of its texts spell it with _."""
    name = _qmp_name(change)
    pattern = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    return bool(name) and re.search(pattern, text.replace("_", "-"), re.IGNORECASE) is not None
