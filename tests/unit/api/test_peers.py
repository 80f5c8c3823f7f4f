"""Who may use the unix socket: real processes of other users at a real socket."""

from __future__ import annotations

import asyncio
import grp
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.served_api import served_api
from vmtune.api.serving.protocol import peer_of
from vmtune.api.serving.sockets import check_folder, listening
from vmtune.config.settings import Settings
from vmtune.errors import Forbidden, SetupError
from vmtune.services.access import users as users_module
from vmtune.services.access.users import LocalUsers, Peer, UserEntry

pytestmark = pytest.mark.integration

NOBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
ASK = """
import http.client, json, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request("GET", "/api/v1/hosts")
response = connection.getresponse()
print(json.dumps([response.status, json.loads(response.read())]))
"""
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="vmtune-peers-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextmanager
def served(folder: Path, group: str) -> Iterator[Path]:
    with served_api(folder, folder / "s", {"socket_group": group}):
        yield folder / "s"


def ask(address: Path, user: int, group: int, *more: int) -> Any:
    """Status and answer for a process with these credentials; None where the file system
    already lets it not connect."""
    done = subprocess.run(
        [PYTHON, "-c", ASK, str(address)],
        user=user,
        group=group,
        extra_groups=list(more),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if "PermissionError" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@NEEDS_ROOT
def test_root_and_members_of_the_group_are_served(folder: Path) -> None:
    members = grp.getgrnam("daemon").gr_gid
    with served(folder, "daemon") as address:
        found = address.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, members)
        assert ask(address, 0, 0)[0] == 200
        assert ask(address, NOBODY, members)[0] == 200
        assert ask(address, NOBODY, NOBODY, members)[0] == 200  # by a supplementary group
        assert ask(address, NOBODY, NOBODY) is None
        # Also where the file lets everybody connect.
        address.chmod(0o666)
        status, problem = ask(address, NOBODY, NOBODY)
        assert (status, problem["errors"][0]["code"]) == (403, "not_a_member")
        assert "daemon" in problem["errors"][0]["remedy"]


@NEEDS_ROOT
def test_without_a_group_only_root_is_served(folder: Path) -> None:
    with served(folder, "") as address:
        assert stat.S_IMODE(address.stat().st_mode) == 0o600
        address.chmod(0o666)
        assert ask(address, 0, 0)[0] == 200
        assert ask(address, NOBODY, NOBODY, 0)[0] == 403  # the group root is not root


def test_a_peer_is_read_from_the_kernel() -> None:
    one, two = socket.socketpair()
    with one, two:
        peer = peer_of(one)
    assert peer is not None
    assert (peer.pid, peer.uid) == (os.getpid(), os.getuid())
    assert peer.groups == {os.getgid(), *os.getgroups()}
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        assert peer_of(tcp) is None


def test_a_group_that_is_missing_is_told_at_the_start() -> None:
    with pytest.raises(SetupError) as caught:
        LocalUsers("no-such-group")
    assert "groupadd" in caught.value.problems[0].remedy


async def test_the_services_own_user_is_served() -> None:
    mine = await LocalUsers("").identify(Peer(1, os.geteuid(), frozenset()))
    assert mine.id == str(os.geteuid())
    with pytest.raises(Forbidden):
        await LocalUsers("").identify(Peer(1, 54321, frozenset()))


async def test_groups_that_the_kernel_does_not_tell_are_looked_up() -> None:
    users = LocalUsers("daemon")  # whose group of that name is its own
    with pytest.raises(Forbidden):
        await users.identify(Peer(1, 1, frozenset()))
    found = await users.identify(Peer(1, 1, frozenset(), has_more=True))
    assert (found.id, found.name) == ("1", "daemon")


async def test_a_slow_user_database_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers = threading.Event(), threading.Event()

    def slow(uid: int) -> UserEntry:
        asked.set()
        assert answers.wait(30)
        return UserEntry("late")

    monkeypatch.setattr(users_module, "look_up", slow)
    users = LocalUsers("")
    waiting = asyncio.create_task(users.identify(Peer(1, os.geteuid(), frozenset())))
    assert await asyncio.to_thread(asked.wait, 30)  # and the loop goes on
    answers.set()
    assert (await waiting).name == "late"
    answers.clear()
    assert (await users.identify(Peer(1, os.geteuid(), frozenset()))).name == "late"


async def test_a_user_who_is_gone_may_no_longer() -> None:
    now = [0.0]
    users = LocalUsers("daemon", clock=lambda: now[0])
    assert await users.still_may(0, "root")
    assert await users.still_may(1, "daemon")  # that group is its own
    assert not await users.still_may(NOBODY, "nobody")
    assert not await users.still_may(1, "somebody-else")
    assert not await users.still_may(54321, "gone")
    users._remembered[54321, "gone"] = (0.0, True)
    now[0] = 9.9
    assert await users.still_may(54321, "gone")
    now[0] = 10.0
    assert not await users.still_may(54321, "gone")


def test_a_symbolic_link_for_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    settings = Settings(state_dir=tmp_path, runtime_dir=tmp_path / "link", listen_port=0)
    with pytest.raises(SetupError, match="is a symbolic link"), listening(settings):
        pass
    assert list((tmp_path / "real").iterdir()) == []


def test_a_folder_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    (open_to_all / "below").mkdir(parents=True)
    open_to_all.chmod(0o777)
    for folder in (open_to_all, open_to_all / "below"):
        with pytest.raises(SetupError, match="is writable by all users"):
            check_folder(folder)
    open_to_all.chmod(0o1777)  # as /tmp: nobody can take away what is another's
    check_folder(open_to_all / "below")


@NEEDS_ROOT
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(SetupError, match="belongs to user 65534"):
        check_folder(tmp_path)
