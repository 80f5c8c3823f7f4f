"""Write the dump of the newest schema, with something in each table.

Run it once for each new revision, before that is released, and never again for an old one::

    python -m tests.data.store.make_dump > tests/data/store/NNNN.sql
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from tests.support.benchmarks.campaigns import FORECAST, a_campaign
from tests.support.benchmarks.records import make_record
from tests.support.examples.rounds import REPORT, make_rounds
from tests.support.examples.samples import make_samples
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState, Slot
from vmtune.bench.model.trend.change import ChangeKind, FoundChange, Triage
from vmtune.bench.model.trend.scheduled import Schedule
from vmtune.bench.model.tune.kept import StudyState
from vmtune.errors import Problem
from vmtune.forecast.held import Figures, Happened, KeptForecast
from vmtune.forecast.ranges import Range
from vmtune.model.access.audit import Act
from vmtune.model.access.scopes import SERVICE, Identity, Kind, Reach, Rights, Scope
from vmtune.model.access.tokens import Token
from vmtune.model.evacuation.evacuation import (
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    LocalDisks,
)
from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import Disk
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.model.idempotency import Begun, Claim, KeptAnswer
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.copy_progress import DiskSample
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.migration.steps import AfterSeconds, Step, StepAction
from vmtune.model.plan.changes import Change
from vmtune.model.plan.drift import ScanResult
from vmtune.model.plan.outcome import ApplicationState, Outcome, Status
from vmtune.model.profile import Target
from vmtune.stats.model import Design, NoiseFloor, Scale
from vmtune.storage import Store, upgrade
from vmtune.storage.repositories.bench.campaigns import StoredFloor

VM = UUID("00000000-0000-4000-8000-00000000000a")
FIGURES = Figures(True, Range(9e3, 2e4, 3e4), Range(20.0, 50.0, 90.0), None)
OTHER = UUID("00000000-0000-4000-8000-00000000000b")
TIME = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
GOALS = Intent(500, 60)


def fill(store: Store) -> None:
    """Put something in each table."""
    for name in ("a", "b"):
        store.hosts.add(Host(name, f"qemu+ssh://root@{name}/system", "", "", TIME))
    store.retention.cut_audit(TIME + timedelta(seconds=1), Act(SERVICE, "", "keep_house"))
    store.retention.drop_entries()
    store.vms.remember_all("a", {VM: "guest", OTHER: "other"}, TIME)
    store.vms.set_labels(VM, {"tier": "db", "zone": "1"})
    store.profiles.create("tuned", "with multifd", {"multifd": True}, "first")
    steps = [Step(AfterSeconds(300), StepAction.ABORT)]
    more = {"multifd": True, "multifd_channels": 8}
    store.profiles.revise("tuned", more, "more", steps=steps, intent=GOALS)
    store.profiles.create("gone", "", {"tls": "word"}, "kept")
    store.profiles.delete("gone")
    store.assignments.add(Target.SELECTOR, "tier=db", "tuned")
    store.assignments.add(Target.DEFAULT, "", "tuned", GOALS)
    for state in (ApplicationState.APPLIED, ApplicationState.FAILED):
        begun = store.applications.begin(
            VM, "a", "tuned", 1, {"multifd": True}, False, [Change("multifd", False)]
        )
        outcome = Outcome("multifd", Status.OVERWRITTEN, True, False, "overwritten by libvirt")
        problem = Problem("multifd", "command_refused", "QEMU refused", "try again")
        store.applications.finish(begun.id, state, [outcome], [problem])
    done = store.migrations.begin(
        vm=VM, vm_name="guest", source="a", destination="b", profile="tuned", revision=2,
        wanted={"multifd": True}, overrides=["optmem_low"], state=MigrationState.ACTIVE,
        started_at=TIME, active_at=TIME + timedelta(milliseconds=150), steps=steps,
    )  # fmt: skip
    store.migrations.add_samples(done.id, make_samples(230))
    looked = [
        DiskSample(at_ms, target, at_ms, 4096, 1000, 10)
        for at_ms in (1000, 2000)
        for target in ("vda", "vdb")
    ]
    store.migrations.add_disk_samples(done.id, looked)
    store.migrations.add_rounds(done.id, make_rounds(430))
    taken = StepRecord(0, 300_020, 9, "abort", "300.0 s passed", StepEffect.REFUSED, "no")
    store.migrations.note_step(done.id, taken, [Change("downtime_limit_ms", 300)])
    store.migrations.update(
        done.id,
        reaper=REPORT,
        disks=(CopiedDisk("vda", "/x", created=True, total_bytes=9, copied_bytes=4),),
    )
    store.migrations.update(
        done.id, state=MigrationState.COMPLETED, totals=Totals(23_000, 40, 7, 1 << 33, 14)
    )
    store.forecasts.keep(done.id, KeptForecast(Basis.BEFORE, TIME, FIGURES, {"records": 3}))
    store.forecasts.settle(done.id, lambda _: Happened(True, 23e3, 40.0, 8e9), TIME)
    store.migrations.begin(vm=OTHER, vm_name="other", source="a", destination="b")
    ran = store.runs.begin(
        scenario="quick/busy", setup={"name": "quick/busy"}, values={"multifd": True},
        profile="tuned", revision=2, qemu="system", slot=Slot(OTHER, "tuned", 1, 2),
    )  # fmt: skip
    place = {"cpu": {"count": 2}, "accelerator": "kvm"}
    store.runs.start(ran.id, place, "0123456789abcdef", {"load_1min": 0.5})
    figures = {"total_time_ms": 1234.0, "converged": 1.0}
    store.runs.finish(ran.id, RunState.COMPLETED, make_record(60), figures)
    store.runs.begin(scenario="quick/idle", setup={"name": "quick/idle"}, values={})
    store.campaigns.begin(a_campaign(), FORECAST, "here", OTHER)
    store.studies.begin("better", {"name": "better"}, "here", VM)
    store.studies.keep_trial(VM, 1, {"number": 1, "runs": []})
    store.studies.enter(VM, StudyState.PAUSED, "the lab is down")
    store.campaigns.enter(OTHER, CampaignState.PAUSED, "the lab is down")
    floor = NoiseFloor(
        "total_time_ms", "0123456789abcdef", Scale.RATIO, Design.PAIRED, 6, 1.03, 1.01
    )
    change = FoundChange(
        OTHER, "q/busy", "total_time_ms", "0011aabb", VM, TIME, ChangeKind.STEP, "1.2 times", True,
        TIME,
    )  # fmt: skip
    store.found_changes.keep(change)
    store.found_changes.triage(change.id, Triage.KNOWN, "a new kernel", "admin")
    store.schedules.add(Schedule("nightly", {"name": "nightly"}, 86_400, "here", TIME, TIME))
    store.campaigns.keep_floors(OTHER, [StoredFloor("quick/busy", floor)])
    reader = Rights(frozenset({Scope.READ}), Reach(frozenset({"a"}), frozenset({("tier", "db")})))
    for id, name in (("aaaaaaaaaaaa", "ci"), ("bbbbbbbbbbbb", "left")):
        creator = Identity(Kind.USER, "0", "root")
        store.tokens.add(Token(id, name, reader, creator, TIME), "$argon2id$v=19$...")
    store.tokens.revoke("bbbbbbbbbbbb")
    ci = Identity(Kind.TOKEN, "aaaaaaaaaaaa", "ci")
    store.tokens.sign_in("0" * 64, ci, "127.0.0.1", TIME + timedelta(days=1))
    joined = store.services.join("here-vmtune", "here", 4711, "0.0")
    store.services.claim("a", joined.name, "")
    store.services.order("0123", "migration", "a")
    leaving = [
        EvacuationVm(
            VM, "guest", 1 << 30, 7, EvacuationVmState.WAITING, "b", overrides=("optmem_low",),
            disks=(Disk("vda", path="/images/guest", allocated_bytes=2 << 30),),
            values={"copy_storage": True, "copy_disks": "vda"},
        ),
        EvacuationVm(
            OTHER, "other", 2 << 30, 0, EvacuationVmState.BLOCKED, "b", "QEMU says: no",
            (Finding("vm_cannot_migrate", "", {"reason": "no"}),),
        ),
    ]  # fmt: skip
    store.evacuations.begin(
        "a", leaving, destinations=["b"], max_outgoing=1, id=VM, intent=GOALS,
        local_disks=LocalDisks.COPY,
    )  # fmt: skip
    store.evacuations.enter(VM, EvacuationState.PAUSED)
    silent = Problem(f"vms.{VM}", "monitor_busy", "another client holds it", "let go of it")
    store.drift_scans.ask(["a"])
    store.drift_scans.note("a", 1, ScanResult(2, 1, 3, 1, 1, 40, (silent,)))
    store.retention.begin_task("retention", 3600)
    key = Claim(Kind.TOKEN, "aaaaaaaaaaaa", "k", "0" * 64, "start_migration", Begun.MIGRATION)
    store.idempotency.claim(key)
    store.idempotency.keep(key, KeptAnswer(202, {"location": "/"}, "{}"))
    hook = store.webhooks.add("ops", "https://ops.example/vmtune", ["migration.ended"], "root")
    store.webhooks.rotate(hook.id)
    store.webhooks.test(hook.id)
    for subject in ("1", "2", "3"):
        store.events.append(EventTopic.MIGRATION, subject, {"state": "active"})


def main() -> None:
    """Print the dump."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vmtune.db"
        upgrade(f"sqlite:///{file}")
        with Store.open(f"sqlite:///{file}", now=lambda: TIME) as store:
            fill(store)
        with closing(sqlite3.connect(file)) as connection:
            sys.stdout.writelines(f"{line}\n" for line in connection.iterdump())


if __name__ == "__main__":
    main()
