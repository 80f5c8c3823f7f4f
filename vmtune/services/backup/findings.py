"""What ``vmtune db check`` may find: each code with its remedy."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.errors import Problem

_RESTORE = "restore a backup: `vmtune db restore FILE --force`"
_REPORT = "no data is lost; report it, with `vmtune db check --json` and the version"
_SETTLES = (
    "a running service settles it within a minute; if it stays, restart the service, and report it"
)
REMEDIES: Mapping[str, str] = {
    "no_schema": "make it with `vmtune db upgrade`, or name the right one with --state-dir or "
    "--database-url",
    "schema_old": "stop the service, then `vmtune db upgrade`",
    "schema_new": "use the vmtune that made it",
    "half_restored": "restore it again: `vmtune db restore FILE --force`",
    "damaged": _RESTORE,
    "dangling_row": _RESTORE,
    "readable_by_others": "chmod 600 FILE: it holds how hosts are reached",
    "audit_broken": "it was changed without vmtune: keep a copy of it, find out who may "
    "write the database, and compare with a backup",
    "entries_not_dropped": "`vmtune db prune` drops them; a running service does within an hour",
    "vm_held_for_nothing": _SETTLES,
    "vm_not_held": _SETTLES,
    "slot_for_nothing": _SETTLES,
    "no_slot": _SETTLES,
    "unknown_migration": _REPORT,
    "unknown_campaign": _REPORT,
    "unknown_study": _REPORT,
    "unknown_application": "`vmtune verify VM` records the VM's tuning state again",
    "no_revision": _RESTORE,
    "unknown_service": "start that service once, or give the host to another: "
    "`vmtune host give HOST SERVICE`",
    "samples_not_dropped": "`vmtune db prune` drops them",
    "record_without_job": _SETTLES,
    "job_without_record": _SETTLES,
}


def finding(code: str, message: str, where: str = "") -> Problem:
    """One of them."""
    return Problem(where, code, message, REMEDIES[code])
