"""Settings: defaults, file, variables, and what is refused by name."""

import subprocess
import sys
from pathlib import Path

import pytest

from vmtune.config.settings import SYSTEM_QEMU, BenchQemu, Settings
from vmtune.errors import InvalidInput


@pytest.fixture(autouse=True)
def _no_system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmtune.config.settings.DEFAULT_FILE", tmp_path / "absent.toml")


def written(folder: Path, text: str) -> Path:
    path = folder / "vmtune.toml"
    path.write_text(text)
    return path


def test_defaults_are_derived_from_each_other() -> None:
    settings = Settings.load(None, {})
    assert settings == Settings()
    assert settings.socket_path == Path("/run/vmtune/vmtune.sock")
    assert settings.database_url == "sqlite:////var/lib/vmtune/vmtune.db"
    assert settings.jobs_database_url == "sqlite:////var/lib/vmtune/jobs.db"
    moved = Settings.load(None, {"VMTUNE_STATE_DIR": "/s", "VMTUNE_RUNTIME_DIR": "/r"})
    assert moved.database_url == "sqlite:////s/vmtune.db"
    assert moved.socket_path == Path("/r/vmtune.sock")


def test_jobs_share_a_postgresql_and_never_a_sqlite_file() -> None:
    shared = Settings.load(None, {"VMTUNE_DATABASE_URL": "postgresql://u@h/d"})
    assert shared.jobs_database_url == "postgresql://u@h/d"
    own = Settings.load(None, {"VMTUNE_DATABASE_URL": "sqlite:////x/y.db"})
    assert own.jobs_database_url != own.database_url


def test_variables_go_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    path = written(
        tmp_path, 'listen_port = 9\nsample_hz = 5\nlog_format = "json"\nmax_body_bytes = 2048\n'
    )
    settings = Settings.load(path, {"VMTUNE_LISTEN_PORT": "0", "VMTUNE_LOG_LEVEL": "debug"})
    assert (settings.listen_port, settings.sample_hz) == (0, 5.0)
    assert (settings.log_format, settings.log_level) == ("json", "debug")
    assert settings.max_body_bytes == 2048
    assert Settings.load(None, {"VMTUNE_CONFIG": str(path)}).listen_port == 9


def test_the_default_file_is_read_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.config.settings.DEFAULT_FILE", written(tmp_path, "listen_port = 9"))
    assert Settings.load(None, {}).listen_port == 9


@pytest.mark.parametrize(("text", "value"), [("on", True), ("False", False), ("1", True)])
def test_truth_in_a_variable(text: str, value: bool) -> None:
    environ = {"VMTUNE_DESTINATION_COMMAND_LINE": text}
    assert Settings.load(None, environ).destination_command_line is value


def test_variables_of_others_and_empty_ones_are_left_alone() -> None:
    environ = {
        "VMTUNE_LAB_PREFIX": "x",
        "VMTUNE_SOCKET": "/x",
        "VMTUNE_STATE_DIR": "",
        "HOME": "/",
    }
    assert Settings.load(None, environ) == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("listen_port", "65536"),
        ("listen_port", "-1"),
        ("listen_port", "http"),
        ("listen_port", "9" * 5000),
        ("sample_hz", "0"),
        ("sample_hz", "nan"),
        ("sample_hz", "fast"),
        ("max_body_bytes", "5"),
        ("state_dir", "relative"),
        ("socket_path", "/" + "x" * 108),
        ("max_import_bytes", "5"),
        ("bench_dir", "relative"),
        ("bench_live_dir", "/" + "x" * 75),
        ("bench_dir", "/" + "x" * 75),
        ("bench_qemus", "old"),
        ("bench_qemus", "old=relative"),
        ("bench_qemus", "old=/q:data"),
        ("bench_qemus", "O=/q"),
        ("bench_qemus", "../x=/q"),
        ("database_url", "mysql://h/d"),
        ("listen_address", "localhost"),
        ("listen_address", "192.0.2.300"),
        ("socket_group", "a group"),
        ("socket_group", "-x"),
        ("tls_cert", "relative.pem"),
        ("insecure_listen", "perhaps"),
        ("allowed_hosts", "a b"),
        ("allowed_hosts", "https://a"),
        ("trusted_proxies", "proxy.example"),
        ("session_idle_minutes", "0"),
        ("allow_qmp_commands", "quit;"),
        ("destination_command_line", "maybe"),
        ("log_format", "xml"),
        ("log_level", "loud"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_where_it_is(name: str, text: str) -> None:
    variable = f"VMTUNE_{name.upper()}"
    with pytest.raises(InvalidInput) as refused:
        Settings.load(None, {variable: text})
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == (name, "invalid_setting")
    assert variable in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    "line", ['listen_port = "x"', "listen_port = true", "sample_hz = true", "state_dir = 3",
             "bench_qemus = 3", "[bench_qemus.old]", "bench_qemus.old = 3",
             'bench_qemus.old = {binary = "/q", more = 1}', "bench_qemus.old = {binary = 3}",
             "destination_command_line = 1", "log_format = []", "log_format = {a = 1}"]
)  # fmt: skip
def test_a_bad_value_in_a_file(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(InvalidInput, match=str(path)):
        Settings.load(path, {})


def test_qemus_of_benchmarks_have_names(tmp_path: Path) -> None:
    assert Settings().qemus == {"system": SYSTEM_QEMU}
    text = '[bench_qemus.old]\nbinary = "/opt/old/qemu"\ndata_folder = "/opt/old/data"\n'
    old = BenchQemu("old", Path("/opt/old/qemu"), Path("/opt/old/data"))
    settings = Settings.load(written(tmp_path, text), {})
    assert settings.qemus == {"system": SYSTEM_QEMU, "old": old}
    named = "old=/opt/old/qemu:/opt/old/data, system=/opt/q"
    by_variable = Settings.load(None, {"VMTUNE_BENCH_QEMUS": named})
    assert by_variable.qemus == {"system": BenchQemu("system", Path("/opt/q")), "old": old}


@pytest.mark.parametrize("address", ["192.0.2.1", "0.0.0.0", "::", "2001:db8::1"])
def test_tokens_do_not_cross_a_network_in_the_clear_unless_one_insists(address: str) -> None:
    given = {"VMTUNE_LISTEN_ADDRESS": address}
    with pytest.raises(InvalidInput) as refused:
        Settings.load(None, given)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("listen_address", "insecure_listener")
    assert "tls_cert" in problem.remedy
    assert "insecure_listen" in problem.remedy
    tls = {"VMTUNE_TLS_CERT": "/c.pem", "VMTUNE_TLS_KEY": "/k.pem"}
    for more in ({"VMTUNE_INSECURE_LISTEN": "on"}, {"VMTUNE_LISTEN_PORT": "0"}, tls):
        assert Settings.load(None, {**given, **more}).listen_address == address
    assert Settings.load(None, {**given, **tls}).tls
    for loopback in ("127.0.0.1", "::1", "127.1.2.3"):
        Settings.load(None, {"VMTUNE_LISTEN_ADDRESS": loopback})


@pytest.mark.parametrize(("given", "missing"), [("cert", "key"), ("key", "cert")])
def test_a_certificate_has_its_key(given: str, missing: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.load(None, {f"VMTUNE_TLS_{given.upper()}": "/x.pem"})
    assert refused.value.problems[0].field == f"tls_{missing}"


def test_lists_in_files_and_variables(tmp_path: Path) -> None:
    path = written(tmp_path, 'allowed_hosts = ["a.example", "b"]\nallow_qmp_commands = ["x-y"]\n')
    settings = Settings.load(path, {})
    assert settings.allowed_hosts == ("a.example", "b")
    assert settings.allow_qmp_commands == ("x-y",)
    settings = Settings.load(
        path, {"VMTUNE_ALLOWED_HOSTS": "c, d", "VMTUNE_TRUSTED_PROXIES": "::1"}
    )
    assert (settings.allowed_hosts, settings.trusted_proxies) == (("c", "d"), ("::1",))
    for line in ('allowed_hosts = "a b"', "allowed_hosts = 3", "allowed_hosts = [3]"):
        with pytest.raises(InvalidInput, match="allowed_hosts"):
            Settings.load(written(tmp_path, line), {})


def test_an_address_that_means_all_is_no_name() -> None:
    every = Settings(listen_address="0.0.0.0", allowed_hosts=("a",))
    assert every.host_names == ("a",)
    assert Settings(listen_address="192.0.2.1").host_names == ("192.0.2.1",)


def test_a_refused_url_does_not_show_its_password() -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.load(None, {"VMTUNE_DATABASE_URL": "mysql://u:secret@h/d"})
    assert "secret" not in str(refused.value)


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "listen_prt = 1\nsample_hz = 0\n")
    with pytest.raises(InvalidInput) as refused:
        Settings.load(path, {"VMTUNE_STAT_DIR": "/x"})
    problems = {p.field: p for p in refused.value.problems}
    assert problems.keys() == {"listen_prt", "sample_hz", "stat_dir"}
    assert "listen_port" in problems["listen_prt"].remedy
    assert str(path) in problems["listen_prt"].message
    assert "state_dir" in problems["stat_dir"].remedy
    assert "VMTUNE_STAT_DIR" in problems["stat_dir"].message


@pytest.mark.parametrize("content", [b"listen_port =", b"\xff\xfe"])
def test_a_file_that_is_no_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vmtune.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="not TOML"):
        Settings.load(path, {})


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        Settings.load(tmp_path / "absent.toml", {})


def test_the_command_can_afford_to_import_it() -> None:
    slow = {"sqlalchemy", "fastapi", "pydantic", "structlog", "tomllib", "difflib", "asyncio"}
    program = f"import sys, vmtune.config.settings; print(*({slow!r} & sys.modules.keys()))"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert loaded.strip() == ""
