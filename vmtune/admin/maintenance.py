"""Backs up, restores, checks and prunes the databases, for the ``vmtune db`` command: the client
has no store."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from vmtune.api.wiring.retention import retention_of
from vmtune.config.settings import Settings
from vmtune.model.access.audit import Act
from vmtune.model.access.scopes import FULL, Identity, Kind
from vmtune.services import retention
from vmtune.services.backup import backups
from vmtune.services.backup import check as database_check
from vmtune.services.backup.archive import Manifest
from vmtune.services.backup.backups import Databases, Restored
from vmtune.services.backup.check import Checked
from vmtune.services.retention import Expired, Pruned
from vmtune.storage import Store


def _path_of(settings: Settings) -> Databases:
    return Databases.at(settings.database_url, settings.jobs_database_url, settings.state_dir)


def _act(action: str, reason: str) -> Act:
    """What the user of this process does."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = ""
    return Act(Identity(Kind.USER, str(uid), name, FULL), "vmtune db", action, reason)


def backup(settings: Settings, file: Path) -> Manifest:
    """See :func:`vmtune.services.backup.backups.backup`."""
    return backups.backup(_path_of(settings), file)


def restore(settings: Settings, file: Path, *, force: bool, reason: str) -> Restored:
    """See :func:`vmtune.services.backup.backups.restore`."""
    return backups.restore(_path_of(settings), file, _act("db_restore", reason), force=force)


def check(settings: Settings) -> Checked:
    """See :func:`vmtune.services.backup.check.check`."""
    return database_check.check(_path_of(settings))


def would_go(settings: Settings) -> Expired:
    """What :func:`prune` would delete now."""
    with Store.open(settings.database_url) as store:
        return retention.expired(store, retention_of(settings))


def prune(settings: Settings, reason: str) -> Pruned:
    """Thin and delete what is past its retention."""
    done = Pruned()
    with Store.open(settings.database_url) as store:
        for step in retention.prune(store, retention_of(settings), _act("db_prune", reason)):
            done += step
    return done
