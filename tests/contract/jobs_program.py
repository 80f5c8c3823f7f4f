"""Runs one job of three phases on the database given, noting each phase in a file.

Started by test_jobs.py, killed in the middle of the second phase, and started
again: usage: jobs_program.py URL NOTES_FILE hang|finish
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from vmtune.jobs.durable import DurableEngine


async def main(url: str, notes: Path, mode: str) -> None:
    def note(text: str) -> None:
        with notes.open("a") as file:
            file.write(f"{text}\n")

    async def first(job_id: str) -> None:
        note(f"first {job_id}")

    async def second(job_id: str) -> None:
        note(f"second {job_id}")
        if mode == "hang":
            print("hanging", flush=True)
            await asyncio.Event().wait()

    async def final(job_id: str) -> None:
        note(f"final {job_id}")

    engine = DurableEngine(url)
    engine.register("demo", [("first", first), ("second", second), ("final", final)])
    await engine.start()
    if mode == "hang":
        await engine.submit("demo", "a-job")
    print((await engine.wait("a-job", timeout_s=60)).status, flush=True)
    await engine.stop()


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
