"""What every job engine does: in memory, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.stores.postgres import new_database, running_postgres, why_no_postgres
from vmtune.errors import CommandRefused, NotFound, SetupError
from vmtune.jobs.base import JobEngine, JobStatus, Phase
from vmtune.jobs.durable import DurableEngine
from vmtune.testing.inline_jobs import InlineEngine

PROGRAM = Path(__file__).parent / "jobs_program.py"
DATABASES = [
    "sqlite",
    pytest.param(
        "postgresql",
        marks=pytest.mark.skipif(bool(why_no_postgres()), reason=why_no_postgres()),
    ),
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with _database(request, tmp_path) as url:
        yield url


@contextlib.contextmanager
def _database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/jobs.sqlite3"
    else:
        with new_database(request.getfixturevalue("postgres")) as url:
            yield url


class Service:
    """Stands for the service: each ``start`` is one life of it, over the same jobs."""

    def __init__(self, database_url: str | None) -> None:
        self._url = database_url
        self._inline: InlineEngine | None = None
        self.built: list[JobEngine] = []

    def build(self, *phases: tuple[str, Phase]) -> JobEngine:
        """An engine with the phases of kind ``demo``.

        The one in memory keeps its jobs itself, so it is the same in all lives.
        """
        if self._inline is not None:
            return self._inline
        engine: JobEngine
        if self._url is None:
            engine = self._inline = InlineEngine()
        else:
            engine = DurableEngine(self._url)
        engine.register("demo", phases)
        self.built.append(engine)
        return engine

    async def start(self, *phases: tuple[str, Phase]) -> JobEngine:
        engine = self.build(*phases)
        await engine.start()
        return engine


@pytest.fixture(params=["inline", *DATABASES])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    with contextlib.ExitStack() as stack:
        url = None
        if request.param != "inline":
            url = stack.enter_context(_database(request, tmp_path))
        service = Service(url)
        yield service
        for engine in service.built:
            await engine.stop()


class Story:
    """Makes phases that note when they are called."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    def quick(self, name: str) -> tuple[str, Phase]:
        async def phase(job_id: str) -> None:
            self.notes.append(name)

        return name, phase

    def waits(self, name: str) -> tuple[str, Phase]:
        """Waits for ``go``; notes being cancelled."""

        async def phase(job_id: str) -> None:
            self.notes.append(name)
            self.reached.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.notes.append(f"{name} cancelled")
                raise

        return name, phase

    def hangs(self, name: str) -> tuple[str, Phase]:
        """Waits for ``go`` and does not let itself be cancelled."""

        async def phase(job_id: str) -> None:
            self.notes.append(name)
            self.reached.set()
            while not self.go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self.go.wait()

        return name, phase

    def fails(self, name: str, error: Exception) -> tuple[str, Phase]:
        async def phase(job_id: str) -> None:
            self.notes.append(name)
            raise error

        return name, phase


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    story = Story()
    yield story
    story.go.set()
    await asyncio.sleep(0)  # lets phases that hang end


async def test_phases_run_in_order_on_the_loop_of_the_service(service: Service) -> None:
    seen: list[tuple[str, str, object, int]] = []

    def phase(name: str) -> tuple[str, Phase]:
        async def run(job_id: str) -> None:
            loop = asyncio.get_running_loop()
            seen.append((name, job_id, loop, threading.get_ident()))

        return name, run

    engine = await service.start(phase("a"), phase("b"), phase("c"))
    await engine.submit("demo", "job-1")
    state = await engine.wait("job-1")

    here = (asyncio.get_running_loop(), threading.get_ident())
    assert seen == [(name, "job-1", *here) for name in "abc"]
    assert (state.job_id, state.kind, state.status, state.error) == (
        "job-1",
        "demo",
        JobStatus.SUCCEEDED,
        "",
    )
    assert await engine.state("job-1") == state


async def test_a_kind_may_have_its_final_phase_only(service: Service, story: Story) -> None:
    engine = await service.start(story.quick("only"))
    await engine.submit("demo", "job-1")
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["only"]


async def test_submitting_an_id_again_does_nothing(service: Service, story: Story) -> None:
    engine = await service.start(story.waits("a"), story.quick("z"))
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.submit("demo", "job-1")
    story.go.set()
    await engine.wait("job-1")
    await engine.submit("demo", "job-1")
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["a", "z"]


async def test_submitted_though_the_caller_gave_up(service: Service, story: Story) -> None:
    engine = await service.start(story.waits("a"), story.quick("z"))
    caller = asyncio.create_task(engine.submit("demo", "job-1"))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    async with asyncio.timeout(60):
        await story.reached.wait()
    story.go.set()
    await engine.wait("job-1")
    assert story.notes == ["a", "z"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CommandRefused("QEMU said no", remedy="ask again"), "QEMU said no (ask again)"),
        (ValueError("surprise"), "ValueError: surprise"),
    ],
)
async def test_a_failure_skips_to_the_final_phase(
    service: Service, story: Story, error: Exception, text: str
) -> None:
    engine = await service.start(
        story.quick("a"), story.fails("b", error), story.quick("c"), story.quick("z")
    )
    await engine.submit("demo", "job-1")
    state = await engine.wait("job-1")
    assert (state.status, state.error) == (JobStatus.FAILED, text)
    assert story.notes == ["a", "b", "z"]


async def test_a_failure_of_the_final_phase_is_added(service: Service, story: Story) -> None:
    engine = await service.start(
        story.fails("a", CommandRefused("first")), story.fails("z", CommandRefused("second"))
    )
    await engine.submit("demo", "job-1")
    state = await engine.wait("job-1")
    assert (state.status, state.error) == (JobStatus.FAILED, "first; then: second")


async def test_cancel_skips_to_the_final_phase(service: Service, story: Story) -> None:
    engine = await service.start(
        story.quick("a"), story.waits("b"), story.quick("c"), story.quick("z")
    )
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    assert await engine.cancel("job-1") is True
    state = await engine.wait("job-1")
    assert (state.status, state.error) == (JobStatus.CANCELLED, "")
    assert story.notes == ["a", "b", "b cancelled", "z"]
    assert await engine.cancel("job-1") is False


async def test_the_final_phase_is_not_cancelled(service: Service, story: Story) -> None:
    engine = await service.start(story.quick("a"), story.waits("z"))
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    assert await engine.cancel("job-1") is False
    story.go.set()
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["a", "z"]


async def test_nothing_is_cancelled_when_the_last_phase_completes_anyway(
    service: Service, story: Story
) -> None:
    engine = await service.start(story.hangs("a"), story.quick("z"))
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    assert await engine.cancel("job-1") is True
    story.go.set()
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED


async def test_a_cancellation_from_inside_is_a_failure(service: Service, story: Story) -> None:
    async def phase(job_id: str) -> None:
        raise asyncio.CancelledError

    engine = await service.start(("a", phase), story.quick("z"))
    await engine.submit("demo", "job-1")
    assert (await engine.wait("job-1")).status is JobStatus.FAILED
    assert story.notes == ["z"]


async def test_a_stop_leaves_jobs_to_be_resumed(service: Service, story: Story) -> None:
    phases = [story.quick("a"), story.waits("b"), story.quick("z")]
    engine = await service.start(*phases)
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.stop()
    assert story.notes == ["a", "b", "b cancelled"]

    story.go.set()
    engine = await service.start(*phases)
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["a", "b", "b cancelled", "b", "z"]


async def test_a_final_phase_is_resumed_too(service: Service, story: Story) -> None:
    phases = [story.fails("a", CommandRefused("no")), story.waits("z")]
    engine = await service.start(*phases)
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.stop()
    story.go.set()
    engine = await service.start(*phases)
    state = await engine.wait("job-1")
    assert (state.status, state.error) == (JobStatus.FAILED, "no")
    assert story.notes == ["a", "z", "z cancelled", "z"]


async def test_a_stop_does_not_wait_for_phases_that_hang(service: Service, story: Story) -> None:
    phases = [story.hangs("a"), story.quick("z")]
    engine = await service.start(*phases)
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.stop()  # the phase hangs until the end of the test
    assert story.notes == ["a"]


async def test_an_error_caused_by_the_stop_is_no_failure(service: Service, story: Story) -> None:
    async def phase(job_id: str) -> None:
        story.notes.append("a")
        story.reached.set()
        try:
            await story.go.wait()
        except asyncio.CancelledError:
            raise ConnectionError("closed under me") from None

    phases: Sequence[tuple[str, Phase]] = [("a", phase), story.quick("z")]
    engine = await service.start(*phases)
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.stop()
    story.go.set()
    engine = await service.start(*phases)
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["a", "a", "z"]


async def test_a_request_to_cancel_survives_a_stop(service: Service, story: Story) -> None:
    phases = [story.hangs("a"), story.quick("b"), story.quick("z")]
    engine = await service.start(*phases)
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.cancel("job-1")
    await engine.stop()

    engine = await service.start(*phases)
    state = await engine.wait("job-1", timeout_s=30)
    assert (state.status, story.notes) == (JobStatus.CANCELLED, ["a", "z"])


async def test_fifty_jobs_run_at_once(service: Service, story: Story) -> None:
    met = asyncio.Barrier(50)

    async def meet(job_id: str) -> None:
        await met.wait()  # passes only when all fifty are here

    engine = await service.start(("a", meet), story.quick("z"))
    ids = [f"job-{n}" for n in range(50)]
    await asyncio.gather(*(engine.submit("demo", job_id) for job_id in ids))
    states = await asyncio.gather(*(engine.wait(job_id) for job_id in ids))
    assert {state.status for state in states} == {JobStatus.SUCCEEDED}


async def test_a_phase_may_submit_a_job_and_wait_for_it(service: Service, story: Story) -> None:
    async def parent(job_id: str) -> None:
        if not job_id.startswith("child"):
            await engine.submit("demo", f"child-{job_id}")
            story.notes.append((await engine.wait(f"child-{job_id}")).status)

    engine = await service.start(("a", parent), story.quick("z"))
    await engine.submit("demo", "job-1")
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    assert story.notes == ["z", "succeeded", "z"]


async def test_wait_gives_up_after_its_timeout(service: Service, story: Story) -> None:
    engine = await service.start(story.waits("a"), story.quick("z"))
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    assert (await engine.wait("job-1", timeout_s=0)).status is JobStatus.RUNNING
    assert (await engine.wait("job-1", timeout_s=0.01)).status is JobStatus.RUNNING


async def test_unknown_jobs_and_kinds(service: Service, story: Story) -> None:
    engine = await service.start(story.quick("z"))
    for call in (engine.state, engine.cancel, engine.wait):
        with pytest.raises(NotFound, match="no-such-job"):
            await call("no-such-job")
    with pytest.raises(NotFound, match="no-such-kind"):
        await engine.submit("no-such-kind", "job-1")


async def test_nothing_works_while_not_started(service: Service, story: Story) -> None:
    engine = service.build(story.waits("a"), story.quick("z"))
    await engine.stop()  # does nothing
    for _ in ("before the start", "after the stop"):
        with pytest.raises(SetupError, match="not running"):
            await engine.submit("demo", "job-1")
        for call in (engine.state, engine.cancel, engine.wait):
            with pytest.raises(SetupError, match="not running"):
                await call("job-1")
        await engine.start()
        await engine.submit("demo", "job-2")
        waiter = asyncio.create_task(engine.wait("job-2"))
        await story.reached.wait()
        await engine.stop()
        with pytest.raises(SetupError, match="not running"):
            await waiter


async def test_what_cannot_be_registered(service: Service, story: Story) -> None:
    engine = service.build(story.quick("z"))
    with pytest.raises(ValueError, match="registered already"):
        engine.register("demo", [story.quick("z")])
    with pytest.raises(ValueError, match="no phases"):
        engine.register("empty", [])
    with pytest.raises(ValueError, match="of one name"):
        engine.register("twice", [story.quick("z"), story.quick("z")])
    await engine.start()
    with pytest.raises(RuntimeError, match="before start"):
        engine.register("late", [story.quick("z")])
    with pytest.raises(RuntimeError, match="started already"):
        await engine.start()


async def test_a_job_of_another_version_is_finished_by_the_final_phase_of_today(
    database_url: str, story: Story
) -> None:
    engine = DurableEngine(database_url)
    engine.register("demo", [story.quick("a"), story.waits("old"), story.quick("finalize")])
    await engine.start()
    await engine.submit("demo", "job-1")
    await story.reached.wait()
    await engine.stop()

    engine = DurableEngine(database_url)
    engine.register("demo", [story.quick("a"), story.quick("new"), story.quick("finish")])
    await engine.start()
    state = await engine.wait("job-1")
    await engine.stop()
    assert (state.status, state.error) == (
        JobStatus.FAILED,
        "demo: this version has no phase 'old'",
    )
    assert story.notes == ["a", "old", "old cancelled", "finish"]


async def test_after_kill_9_only_the_interrupted_phase_is_repeated(
    database_url: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    command = [sys.executable, str(PROGRAM), database_url, str(notes)]
    pipe = asyncio.subprocess.PIPE
    first = await asyncio.create_subprocess_exec(*command, "hang", stdout=pipe)
    assert first.stdout is not None
    assert await first.stdout.readline() == b"hanging\n"
    first.kill()
    await first.communicate()

    # What dbos resumes depends on neither the version of the code nor its settings.
    other = os.environ | {"DBOS__APPVERSION": "other", "DBOS__VMID": "other"}
    second = await asyncio.create_subprocess_exec(
        *command, "finish", stdout=pipe, stderr=pipe, env=other
    )
    out, err = await second.communicate()
    assert (out, err, second.returncode) == (b"succeeded\n", b"", 0)
    assert notes.read_text().split("\n") == [
        "first a-job",
        "second a-job",
        "second a-job",
        "final a-job",
        "",
    ]
