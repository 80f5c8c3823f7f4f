"""A report as a campaign on the lab gives it, with everything that can go wrong in it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.report.build import CellPlan, Plan, build
from vmtune.bench.report.report import Report, ReportArm, ReportRun
from vmtune.stats.model import Design, NoiseFloor, Scale
from vmtune.stats.schedule import schedule

MADE_AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
HERE = {
    "accelerator": "kvm",
    "cpu": {"model": "EPYC 7543", "count": 2},
    "kernel": {"release": "6.1.0-28-amd64"},
    "qemu": {"version": "10.0.2", "digest": "0f3c5a77aa01be52"},
}
THERE = {**HERE, "kernel": {"release": "6.12.9-amd64"}}
ARMS = (
    ReportArm("stock", {"profile": "stock, revision 1", "values": "nothing set"}),
    ReportArm(
        "tuned",
        {
            "profile": "tuned, revision 3",
            "values": "multifd on, multifd_channels 2, multifd_compression zstd",
        },
    ),
)
FLOOR = NoiseFloor(
    "downtime_ms", "here", Scale.RATIO, Design.PAIRED, size=10, effect=1.6, observed=1.1
)


def plan(blocks: int = 10, **changes: object) -> Plan:
    """Stock against tuned, in two cells."""
    settings = {
        "title": "stock against tuned",
        "arms": ARMS,
        "against": (("stock", "tuned"),),
        "cells": (CellPlan("idle", "lab/idle"), CellPlan("busy", "lab/busy")),
        "campaign": "stock-against-tuned",
        "seed": 7,
        "blocks": blocks,
    }
    return Plan(**{**settings, **changes})  # type: ignore[arg-type]  # what a test changes


def runs(blocks: int = 10, *, seed: int = 1, second_environment: bool = False) -> list[ReportRun]:
    """Every run: tuned is faster, has about the same downtime, and in the busy cell stock often
    does not converge and tuned fails once."""
    random = np.random.default_rng(seed)
    found = []
    for cell in ("idle", "busy"):
        for slot in schedule(["stock", "tuned"], blocks, seed=f"7/{cell}", warm_ups=0):
            tuned = slot.arm == "tuned"
            noise = np.exp(0.12 * random.normal(size=6))
            state, failure = RunState.COMPLETED, ""
            total = float(round((330 if tuned else 520) * noise[0] * (1 + random.poisson(0.3) / 4)))
            if cell == "busy":
                total *= 20
                if not tuned and random.random() < 0.35:
                    state = RunState.NOT_CONVERGED
                elif tuned and slot.block == 4:
                    state, failure = RunState.FAILED, "QEMU on the destination ended (signal 9)"
            values = {
                "elapsed_ms": 30_000.0 if state is RunState.NOT_CONVERGED else total + 31,
                "total_time_ms": total,
                "downtime_ms": float(round(38 * noise[1])),
                "transferred_bytes": float(int((96 << 20) * (0.4 if tuned else 1.1) * noise[2])),
                "iterations": float(3 + random.poisson(0.8)),
                "source_cpu_ms": float(round(900 * (1.3 if tuned else 1) * noise[3])),
                "guest_write_mib_per_s": 410.0 * noise[4],
                "guest_baseline_ms_per_gib": 510.0 * noise[5],
                "ring_full_exits": float(random.poisson(0.4 if tuned else 9)),
                "converged": float(state is RunState.COMPLETED),
            }
            if state is not RunState.COMPLETED:
                del values["total_time_ms"], values["downtime_ms"]
            censored: tuple[str, ...] = ()
            if state is RunState.NOT_CONVERGED:
                values["total_time_ms"] = 30_000.0
                censored = ("total_time_ms", "transferred_bytes", "iterations")
            found.append(
                ReportRun(
                    run=f"{cell}-{slot.number:03}",
                    cell=cell,
                    arm=slot.arm,
                    block=slot.block,
                    number=slot.number,
                    state=state,
                    environment="there" if second_environment and tuned else "here",
                    values={} if state is RunState.FAILED else values,
                    censored=censored,
                    failure=failure,
                )
            )
    return found


def report(blocks: int = 10, *, second_environment: bool = False, **changes: object) -> Report:
    """The whole report."""
    return build(
        plan(blocks, **changes),
        runs(blocks, second_environment=second_environment),
        {"here": HERE, "there": THERE},
        MADE_AT,
        [FLOOR],
    )
