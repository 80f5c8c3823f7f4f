"""The hook's script, run as libvirt runs it, with all that can be at the service's socket."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.hook import HookSettings, Script
from vmtune.hook.script import LEAST_MS, MAX_MS, TEMPLATE, digest

DOMAIN = "<domain type='kvm'><name>vm</name><description>é \\n % $HOME `id`</description></domain>"
CHANGED = DOMAIN.replace("vm<", "changed<")
OTHER_CALLS = [
    *(("prepare", "begin"), ("start", "begin"), ("started", "begin"), ("stopped", "end")),
    *(("release", "end"), ("reconnect", "begin"), ("restore", "begin"), ("attach", "begin")),
    *(("migrate", "end"), ("migrate", ""), ("", "")),
]


def http(body: str | bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    size = len(content) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + content


class Listener:
    """Answers each who asks with the same bytes, and keeps what was asked."""

    def __init__(self, address: Path, answer: bytes | None) -> None:
        self.asked: list[bytes] = []
        self._answer = answer
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(address))
        self._listening.listen()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                stream, _ = self._listening.accept()
            except OSError:
                return
            with stream:
                self.asked.append(self._read(stream))
                if self._answer is None:
                    self._done.wait()  # hangs until the test is over
                    return
                stream.sendall(self._answer)

    @staticmethod
    def _read(stream: socket.socket) -> bytes:
        found = b""
        while b"\r\n\r\n" not in found:
            found += stream.recv(65536)
        head, _, body = found.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += stream.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self._done.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)


@contextmanager
def listening(folder: Path, answer: bytes | None) -> Iterator[Listener]:
    it = Listener(folder / "s", answer)
    try:
        yield it
    finally:
        it.close()
        (folder / "s").unlink()


def run(
    folder: Path,
    *call: str,
    xml: str = DOMAIN,
    fail_closed: bool = False,
    limit_ms: int = 20_000,
    path: str = os.environ["PATH"],
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run the script for a step of a VM's life."""
    script = folder / "hook"
    chosen = HookSettings(str(folder / "s"), limit_ms, fail_closed)
    script.write_text(Script.shipped().with_settings(chosen).text)
    arguments = call or ("migrate", "begin")
    return subprocess.run(
        ["/bin/sh", str(script), "vm", *arguments, "-"],
        input=xml,
        env={"PATH": path, "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_answer_is_what_libvirt_gets(tmp_path: Path) -> None:
    with listening(tmp_path, http(CHANGED)) as it:
        done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{CHANGED}\n", "")
    (asked,) = it.asked
    head, _, body = asked.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/hooks/qemu HTTP/1.1\r\n")
    assert b"\r\nContent-Type: application/xml" in head
    assert body == DOMAIN.encode()


def test_as_it_is_means_no_output(tmp_path: Path) -> None:
    with listening(tmp_path, b"HTTP/1.1 204 No Content\r\n\r\n"):
        done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("fail_closed", [False, True])
@pytest.mark.parametrize("call", OTHER_CALLS)
def test_every_other_step_is_left_alone(
    tmp_path: Path, call: tuple[str, str], fail_closed: bool
) -> None:
    """Whatever is there: nobody is asked, nothing is said, nothing fails."""
    with listening(tmp_path, http("rubbish")) as it:
        done = run(tmp_path, *call, fail_closed=fail_closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert it.asked == []
    away = run(tmp_path, *call, fail_closed=fail_closed, path="/nowhere")
    assert (away.returncode, away.stdout, away.stderr) == (0, "", "")


WRONG = {
    "refuses": (http('{"errors": []}', "422 Unprocessable"), "answered with an error"),
    "is broken": (http("<domain></domain>", "500 Internal"), "answered with an error"),
    "sends away": (http("moved", "302 Found"), "is not a domain"),
    "says rubbish": (http("rubbish"), "is not a domain"),
    "says a page": (http("<html>sorry</html>"), "is not a domain"),
    "says a domain's beginning": (http("<domain type='kvm'><name>vm</name>"), "is not a domain"),
    "says another element": (http("<domainsnapshot></domain>"), "is not a domain"),
    "stops in the middle": (http(CHANGED[:40], length=400), "not answer as expected"),
    "says too much": (http(CHANGED, length=1 << 30), "not answer as expected"),
    "is no HTTP": (b"220 mail ready\r\n", "not answer as expected"),
    "hangs up": (b"", "not answer as expected"),
    "says nothing": (http(""), "is not a domain"),
    "says zeros": (http(b"\0" * 100), "is not a domain"),
}


@pytest.mark.parametrize("how", list(WRONG))
def test_a_service_that_is_wrong_holds_nothing_up(tmp_path: Path, how: str) -> None:
    answer, said = WRONG[how]
    with listening(tmp_path, answer):
        done = run(tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        assert said in done.stderr
        assert "the migration continues" in done.stderr
        closed = run(tmp_path, fail_closed=True)
    assert (closed.returncode, closed.stdout) == (1, "")
    assert said in closed.stderr
    assert "--fail-closed" in closed.stderr


@pytest.mark.parametrize(
    ("there", "said"),
    [("nothing", "there is no socket"), ("file", "no socket"), ("dead", "does not listen at")],
)
def test_a_service_that_is_down_holds_nothing_up(tmp_path: Path, there: str, said: str) -> None:
    if there == "file":
        (tmp_path / "s").write_text("")
    elif there == "dead":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / "s"))
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert said in done.stderr
    assert run(tmp_path, fail_closed=True).returncode == 1


def test_a_service_that_hangs_is_waited_for_no_longer_than_the_limit(tmp_path: Path) -> None:
    with listening(tmp_path, None):
        done = run(tmp_path, limit_ms=LEAST_MS)
        assert (done.returncode, done.stdout) == (0, "")
        assert "did not answer within 100 ms" in done.stderr
        assert run(tmp_path, limit_ms=LEAST_MS, fail_closed=True).returncode == 1


def test_without_curl_it_holds_nothing_up(tmp_path: Path) -> None:
    with listening(tmp_path, http(CHANGED)):
        done = run(tmp_path, path="/nowhere")
    assert (done.returncode, done.stdout) == (0, "")
    assert "curl is not installed" in done.stderr


def test_curls_own_settings_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".curlrc").write_text('url = "file:///etc/hostname"\nverbose\nfail-early\n')
    with listening(tmp_path, http(CHANGED)):
        assert run(tmp_path).stdout == f"{CHANGED}\n"


def test_no_proxy_is_asked(tmp_path: Path) -> None:
    with listening(tmp_path, http(CHANGED)) as it:
        run(tmp_path, http_proxy="http://127.0.0.1:9", ALL_PROXY="socks5://127.0.0.1:9")
    assert it.asked[0].startswith(b"POST /api/v1/hooks/qemu ")


def test_a_large_domain_is_sent_at_once(tmp_path: Path) -> None:
    """Without asking first whether it may be, for whose answer curl waits a second."""
    large = f"<domain>{'x' * (2 << 20)}</domain>"
    with listening(tmp_path, http(CHANGED)) as it:
        assert run(tmp_path, xml=large).stdout == f"{CHANGED}\n"
    head, _, body = it.asked[0].partition(b"\r\n\r\n")
    assert b"expect" not in head.lower()
    assert len(body) == len(large)


@pytest.mark.parametrize("limit_ms", [LEAST_MS, 149, 150, 999, 1000, 1049, 1050, 1051, MAX_MS])
def test_curl_is_given_what_is_left_of_the_limit(tmp_path: Path, limit_ms: int) -> None:
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin/curl"
    curl.write_text('#!/bin/sh\nwhile [ "$1" != --max-time ]; do shift; done\necho "$2" >limit\n')
    curl.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(tmp_path / "s"))
        script = Script.shipped().with_settings(HookSettings(str(tmp_path / "s"), limit_ms))
        subprocess.run(
            ["/bin/sh", "-c", script.text, "hook", "vm", "migrate", "begin", "-"],
            stdin=subprocess.DEVNULL, env={"PATH": str(tmp_path / "bin")}, cwd=tmp_path,
            check=True,
        )  # fmt: skip
    assert float((tmp_path / "limit").read_text()) * 1000 == pytest.approx(limit_ms - 50)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@example("x" * 200_000)
@example("%s\\c\\0 'quoted' \"too\" *")
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_any_domain_passes_as_it_is(tmp_path: Path, text: str) -> None:
    answer = f"<domain>{text}</domain>"
    with listening(tmp_path, http(answer)) as it:
        done = run(tmp_path, xml=f"<domain>{text}</domain>")
    assert (done.returncode, done.stdout, done.stderr) == (0, answer + "\n", "")
    assert it.asked[0].endswith(answer.encode())


def test_the_shipped_script_is_as_it_was_sealed() -> None:
    shipped = TEMPLATE.read_text()
    assert f"# vmtune-hook sha256={digest(shipped)}" == shipped.splitlines()[-1]
    script = Script.read(shipped)
    assert script is not None
    assert not script.edited
    assert script.with_settings(HookSettings()).text == shipped  # what packages ship


def test_settings_may_be_edited_and_nothing_else() -> None:
    text = Script.shipped().with_settings(HookSettings("/s", 200, True), ["qemu.d"]).text
    script = Script.read(text)
    assert script is not None
    assert not script.edited
    assert script.came_with == ("qemu.d",)
    other = Script.read(text.replace("limit_ms=200", "limit_ms=300"))
    assert other is not None
    assert not other.edited
    for edited in (text.replace("exit 0", "exit 1", 1), text + "# more\n", "socket=/x\n" + text):
        found = Script.read(edited)
        assert found is not None
        assert found.edited
    assert Script.read("#!/bin/sh\nexit 0\n") is None


@pytest.mark.parametrize("url", ["https://rack9", "https://rack9.example:8470/", "https://[::1]:1"])
def test_settings_of_another_host(url: str) -> None:
    chosen = HookSettings("/s", 200, url=url, token_file="/etc/t", ca_file="/etc/ca.pem")
    text = Script.shipped().with_settings(chosen).text
    assert f"\nurl='{url.rstrip('/')}'\n" in text or f"\nurl={url.rstrip('/')}\n" in text
    assert "\ntoken_file=/etc/t\nca_file=/etc/ca.pem\n" in text
    script = Script.read(text)
    assert script is not None
    assert not script.edited


def test_it_is_plain_posix() -> None:
    for shell in ("dash", "bash"):
        subprocess.run([shell, "-n", str(TEMPLATE)], check=True)
    assert TEMPLATE.read_text().startswith("#!/bin/sh\n")


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("socket", {"socket": "relative/s"}),
        ("socket", {"socket": "/a b"}),
        ("socket", {"socket": "/a\n"}),
        ("socket", {"socket": "/$(id)"}),
        ("socket", {"socket": "/'"}),
        ("socket", {"socket": "/" + "a" * 107}),
        ("socket", {"socket": ""}),
        *(
            ("service_url", {"url": url, "token_file": "/t"})
            for url in (
                "http://rack9",
                "https://",
                "https://rack9/path",
                "https://a:b@rack9",
                "rack9",
                "https://rack9?x",
                "https://rack9:port",
                "https://$(id)",
                "https://rack9\n",
            )
        ),
        ("token_file", {"url": "https://rack9"}),
        ("token_file", {"url": "https://rack9", "token_file": "t"}),
        ("ca_file", {"url": "https://rack9", "token_file": "/t", "ca_file": "/a b"}),
        ("timeout", {"limit_ms": LEAST_MS - 1}),
        ("timeout", {"limit_ms": MAX_MS + 1}),
    ],
)
def test_settings_that_would_not_work_are_refused(field: str, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        HookSettings(**given)  # type: ignore[arg-type]  # which is what is tried
    assert [(p.field, bool(p.remedy)) for p in refused.value.problems] == [(field, True)]
