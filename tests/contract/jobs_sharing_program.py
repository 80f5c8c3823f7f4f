"""One of several services on the same jobs' database, in a process of its own.

usage: jobs_sharing_program.py URL NOTES_FILE WORKER hang|cancel|take-over [DEAD]

``hang`` runs a job whose second phase never ends by itself; ``cancel`` cancels that from
elsewhere; ``take-over`` goes on with what DEAD left.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from vmtune.jobs.durable import DurableEngine


async def main(url: str, notes: Path, worker: str, mode: str, dead: str = "") -> None:
    def note(text: str) -> None:
        with notes.open("a") as file:
            file.write(f"{worker} {text}\n")

    async def first(job_id: str) -> None:
        note("first")

    async def second(job_id: str) -> None:
        note("second")
        if mode == "hang":
            print("hanging", flush=True)
            await asyncio.Event().wait()

    async def final(job_id: str) -> None:
        note("final")

    async def mine(kind: str, job_id: str) -> bool:
        return job_id != "not-mine"

    engine = DurableEngine(url, worker)
    engine.register("demo", [("first", first), ("second", second), ("final", final)])
    await engine.start()
    match mode:
        case "hang":
            await engine.submit("demo", "a-job")
        case "cancel":
            print(await engine.cancel("a-job"), flush=True)
        case "take-over":
            for _ in range(2):  # repeated, it takes nothing more
                print(await engine.take_over(dead, mine), flush=True)
    print((await engine.wait("a-job", timeout_s=60)).status, flush=True)
    await engine.stop()


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
