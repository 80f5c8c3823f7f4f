"""The service's settings: a TOML file, overridden by VMTUNE_* variables.

Passed in, never global. Importing this costs nothing: the command reads it at each start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vmtune.config.accept import integer, integers, list_of, number, one_of, truth
from vmtune.config.cluster import CHECKS, ClusterSettings
from vmtune.config.oidc import OidcSettings, read_oidc
from vmtune.errors import InvalidInput, Problem

DEFAULT_FILE = Path("/etc/vmtune/vmtune.toml")
PREFIX = "VMTUNE_"
# Variables that others read: where the file is, the command's own, what the lab keeps.
_NOT_OURS = tuple(
    f"{PREFIX}{name}" for name in ("CONFIG", "SOCKET", "CACHE", "URL", "TOKEN", "TOKEN_FILE")
)
_NOT_OUR_PREFIXES = ("VMTUNE_LAB_", "VMTUNE_DEMO_", "VMTUNE_TEST_")

_LOOPBACK = ("127.0.0.1", "::1")
LOG_FORMATS = ("auto", "console", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PROXY = re.compile(r"[0-9a-fA-F.:]{2,45}(/[0-9]{1,3})?")
_QMP_COMMAND = re.compile(r"[a-z][a-z0-9_-]{1,63}|x-[a-z0-9_-]{1,63}")
_QOM = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}(\.[A-Za-z][A-Za-z0-9_-]{0,62})?")
_PACK = re.compile(r"[a-z0-9][a-z0-9-]{0,62}|/[^\0]{0,4095}")
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_QEMU_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_MAX_SERVICE_NAME = 63
_SERVICE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{_MAX_SERVICE_NAME - 1}}}")
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_FOLDER_BYTES = 75  # so that sockets of a run fit below it
_MAX_PATH_BYTES = 107  # what a unix socket's address holds, without the ending zero


@dataclass(frozen=True, slots=True)
class BenchQemu:
    """A QEMU that benchmarks may run. Requests name it; they never name a program.

    :param binary: the program, by its path, or by a name on the PATH.
    :param data_folder: where it finds its firmware (``-L``); None: where it was installed.
    """

    name: str
    binary: Path
    data_folder: Path | None = None


SYSTEM_QEMU = BenchQemu("system", Path("qemu-system-x86_64"))
"""The one that is installed; a setting of that name goes before it."""


@dataclass(frozen=True, slots=True)
class Settings(ClusterSettings):
    """How the service runs. Those of its hosts, and of what is kept for how long, are inherited.

    :param state_dir: what has to survive a reboot: the databases.
    :param runtime_dir: what does not: the socket.
    :param service_name: under which it is known to other services on the same PostgreSQL; empty
        for the machine's name and that of *state_dir*.
    :param socket_path: where the service listens; empty for ``vmtune.sock`` in *runtime_dir*.
    :param socket_group: whose members may use the unix socket, besides root and the service's own
        user; empty for no group.
    :param database_url: ``sqlite:////FOLDER/FILE`` or ``postgresql://...``; empty for a
        SQLite file in *state_dir*.
    :param jobs_database_url: likewise for the job engine; empty for a SQLite file of its own,
        or for *database_url* where that is PostgreSQL.
    :param listen_address: the address of the TCP port. One that other machines reach needs
        *tls_cert*, or *insecure_listen*.
    :param listen_port: 0 for no TCP at all. Requests there need a token.
    :param tls_cert: certificate chain in PEM, for TLS on the TCP port.
    :param tls_key: the key of *tls_cert*, in PEM.
    :param insecure_listen: allow tokens to cross a network unencrypted.
    :param allowed_hosts: names under which the TCP port is reached, besides the loopback's.
    :param trusted_proxies: addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto
        are trusted.
    :param connection_keys_dir: the folder below which addresses of hosts may name files: keyfile,
        known_hosts, pkipath.
    :param session_idle_minutes: a browser that is idle for so long is signed out.
    :param oidc: an identity provider that authenticates people; a table, so only in the file.
    :param allow_qmp_commands: QMP commands that tunable packs may send in addition to vmtune's own.
    :param allow_qom: what tunable packs may do with QEMU's objects: ``TYPE.PROPERTY`` sets a
        property, ``TYPE`` makes an object of that type.
    :param packs: tunable packs to load: names of those that come with vmtune, or paths of files
        and folders.
    :param cpus: the CPUs that the service itself uses; empty for all. On one it answers much
        sooner under load (docs/explanation/capacity.md). The QEMUs and loads of benchmarks run
        on all.
    :param sample_hz: samples a second of a running migration, 0.1 to 100.
    :param sample_guest_pages: before a forecast look at up to 1,024 pages of the guest's memory:
        how many are zeros, and how well the others are compressed; nothing else of them is kept.
    :param observe_migrations: record migrations that others start, and apply to them what can
        still be applied of the VM's profile.
    :param max_body_bytes: largest body of a request, 1 KiB to 64 MiB.
    :param max_import_bytes: likewise of a run that is imported, 1 KiB to 1 GiB.
    :param bench_dir: where benchmark runs keep their sockets while they run; of at most 75
        characters.
    :param bench_scratch_dir: where the block benchmark makes its files while it runs: on the disk
        that is to serve them.
    :param bench_live_dir: where the QEMUs of running VMs that are measured make their sockets:
        each under its user, as far as AppArmor or SELinux lets it; of at most 75 characters.
    :param bench_qemus: the QEMUs that benchmarks may run, besides the installed one, which is
        called ``system``.
    :param host_changes: allow raising limits of the machine that the service runs on
        (vm.max_map_count, net.core.optmem_max); they are restored.
    :param destination_command_line: allow ``-global`` arguments in the destination's XML,
        which mark the guest as tainted.
    :param log_format: console for people, json for log collectors; auto for fields of systemd's
        journal where that reads stderr, and else console.
    :param log_level: the lowest level that is logged: debug, info, warning or error.
    """

    state_dir: Path = Path("/var/lib/vmtune")
    service_name: str = ""
    runtime_dir: Path = Path("/run/vmtune")
    socket_path: Path = Path()
    socket_group: str = ""
    database_url: str = ""
    jobs_database_url: str = ""
    listen_address: str = _LOOPBACK[0]
    listen_port: int = 8470
    tls_cert: Path = Path()
    tls_key: Path = Path()
    insecure_listen: bool = False
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    connection_keys_dir: Path = Path("/etc/vmtune/keys")
    session_idle_minutes: int = 30
    oidc: OidcSettings | None = None
    allow_qmp_commands: tuple[str, ...] = ()
    allow_qom: tuple[str, ...] = ()
    packs: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    sample_hz: float = 10.0
    sample_guest_pages: bool = True
    observe_migrations: bool = True
    max_body_bytes: int = 1 << 20
    max_import_bytes: int = 64 << 20
    bench_dir: Path = Path("/run/vmtune-bench")
    bench_scratch_dir: Path = Path("/var/tmp/vmtune-bench")  # noqa: S108 - a folder in it for each
    bench_live_dir: Path = Path("/run/vmtune-live")
    bench_qemus: tuple[BenchQemu, ...] = ()
    destination_command_line: bool = False
    host_changes: bool = False
    log_format: str = LOG_FORMATS[0]
    log_level: str = "info"

    def __post_init__(self) -> None:
        """Fill in what is derived from other settings."""
        if self.socket_path == Path():
            object.__setattr__(self, "socket_path", self.runtime_dir / "vmtune.sock")
        if not self.service_name:
            name = _NOT_OF_A_NAME.sub("-", f"{os.uname().nodename}-{self.state_dir.name}")
            object.__setattr__(self, "service_name", name.strip("-.")[:_MAX_SERVICE_NAME])
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.state_dir / 'vmtune.db'}")
        if not self.jobs_database_url:
            own_file = f"sqlite:///{self.state_dir / 'jobs.db'}"
            where = self.database_url if self.shared else own_file
            object.__setattr__(self, "jobs_database_url", where)

    @property
    def shared(self) -> bool:
        """Whether other services may use the same database."""
        return self.database_url.startswith("postgresql")

    @property
    def qemus(self) -> dict[str, BenchQemu]:
        """Every QEMU that benchmarks may run, by name."""
        return {qemu.name: qemu for qemu in (SYSTEM_QEMU, *self.bench_qemus)}

    @property
    def consents(self) -> frozenset[str]:
        """What tunable packs may send: commands, and ``qom:`` with what *allow_qom* names."""
        return frozenset((*self.allow_qmp_commands, *(f"qom:{name}" for name in self.allow_qom)))

    @classmethod
    def load(cls, path: Path | None, environ: Mapping[str, str]) -> Settings:
        """The settings of a file, overridden by variables.

        A variable that is empty counts as not set.

        :param path: None for the file that VMTUNE_CONFIG names, else /etc/vmtune/vmtune.toml
            if there is one.
        :raise InvalidInput: the file cannot be read, or a key is unknown or has a bad value;
            one problem for each, that says where it came from.
        """
        if path is None and environ.get("VMTUNE_CONFIG"):
            path = Path(environ["VMTUNE_CONFIG"])
        if path is None and DEFAULT_FILE.exists():
            path = DEFAULT_FILE
        given = [(key, raw, str(path)) for key, raw in (_read(path) if path else {}).items()]
        given += [
            (name.removeprefix(PREFIX).lower(), text, f"the variable {name}")
            for name, text in sorted(environ.items())
            if _is_ours(name) and text
        ]
        values: dict[str, Any] = {}  # any: each accepted by the function for its key
        problems: list[Problem] = []
        for key, raw, source in given:
            accept = _ACCEPT.get(key)
            if accept is None:
                problems.append(_unknown(key, source))
                continue
            try:
                values[key] = accept(raw)
            except ValueError as error:
                problems.append(
                    Problem(key, "invalid_setting", f"{key} in {source}: {error}", _remedy(key))
                )
        if not problems:
            settings = cls(**values)
            problems += _contradictions(settings)
        if problems:
            raise InvalidInput("the settings cannot be accepted", problems=problems)
        return settings

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names under which the TCP port is reached, besides the loopback's."""
        if self.listen_address in ("0.0.0.0", "::"):  # noqa: S104 - no name: all addresses
            return self.allowed_hosts
        return (self.listen_address, *self.allowed_hosts)

    @property
    def tls(self) -> bool:
        """Whether the TCP port speaks TLS itself."""
        return self.tls_cert != Path()


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches *address*."""
    import ipaddress  # noqa: PLC0415 - most invocations listen nowhere

    return ipaddress.ip_address(address).is_loopback


def _contradictions(settings: Settings) -> list[Problem]:
    """What each setting may be, and all together not."""
    problems: list[Problem] = []
    if (settings.tls_cert == Path()) != (settings.tls_key == Path()):
        missing, given = ("tls_key", "tls_cert") if settings.tls else ("tls_cert", "tls_key")
        problems.append(
            Problem(missing, "missing", f"{given} is set and {missing} is not", "set both")
        )
    plain = settings.listen_port and not settings.tls and not settings.insecure_listen
    if plain and not is_loopback(settings.listen_address):
        problems.append(
            Problem(
                "listen_address",
                "insecure_listener",
                f"tokens sent to {settings.listen_address} would cross the network in the clear",
                "set tls_cert and tls_key; or listen on 127.0.0.1 behind a reverse proxy that "
                "does TLS; or insist with insecure_listen = true",
            )
        )
    return problems


def _is_ours(name: str) -> bool:
    return (
        name.startswith(PREFIX) and name not in _NOT_OURS and not name.startswith(_NOT_OUR_PREFIXES)
    )


def _read(path: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - most invocations read no file

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InvalidInput(
            f"the settings file {path} cannot be read: {error.strerror}",
            field="config",
            remedy="name a TOML file that this user may read",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the settings file {path} is not TOML: {error}",
            field="config",
            remedy='write lines such as state_dir = "/var/lib/vmtune"',
        ) from error


def _unknown(key: str, source: str) -> Problem:
    import difflib  # noqa: PLC0415 - only for those who misspell

    near = difflib.get_close_matches(key, _ACCEPT, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(_ACCEPT)}"
    return Problem(key, "unknown_setting", f"{source} has an unknown setting {key!r}", hint)


def _remedy(key: str) -> str:
    defaults = {field.name: field.default for field in fields(Settings)}
    default = defaults[key]
    return f"the default is {default}" if default not in (Path(), "", (), None) else "leave it out"


def _path(raw: object) -> Path:
    if not isinstance(raw, str) or not raw.startswith("/") or "\0" in raw:
        raise ValueError("expects a path that begins with /")
    return Path(raw)


def _socket_path(raw: object) -> Path:
    path = _path(raw)
    if len(str(path).encode()) > _MAX_PATH_BYTES:
        raise ValueError(f"a socket's path has at most {_MAX_PATH_BYTES} bytes")
    return path


def _group(raw: object) -> str:
    if not isinstance(raw, str) or not _GROUP.fullmatch(raw):
        raise ValueError(f"expects the name of a group, not {raw!r}")
    return raw


def _service_name(raw: object) -> str:
    if not isinstance(raw, str) or not _SERVICE_NAME.fullmatch(raw):
        raise ValueError(
            f"expects a name of letters, digits, dots, dashes and underscores, not {raw!r}"
        )
    return raw


def _short_folder(raw: object) -> Path:
    path = _path(raw)
    if len(str(path).encode()) > _MAX_FOLDER_BYTES:
        raise ValueError(f"sockets below it need a path of at most {_MAX_FOLDER_BYTES} bytes")
    return path


def _qemus(raw: object) -> tuple[BenchQemu, ...]:
    """``{name = {binary = "...", data_folder = "..."}}``, or ``name=BINARY:DATA_FOLDER,...``."""
    if isinstance(raw, str):
        raw = {
            name: _qemu_text(rest) for name, _, rest in (p.partition("=") for p in raw.split(","))
        }
    if not isinstance(raw, dict):
        raise ValueError("expects a table of QEMUs by name")
    return tuple(_qemu(str(name).strip(), given) for name, given in raw.items())


def _qemu_text(text: str) -> dict[str, str]:
    binary, colon, folder = text.strip().partition(":")
    return {"binary": binary, **({"data_folder": folder} if colon else {})}


def _qemu(name: str, given: object) -> BenchQemu:
    if not _QEMU_NAME.fullmatch(name):
        raise ValueError(
            f"{name[:60]!r} is not a valid name: use lower-case letters, digits, dots, dashes, "
            "underscores"
        )
    if not isinstance(given, dict) or not {"binary"} <= set(given) <= {"binary", "data_folder"}:
        raise ValueError(f"{name} needs a binary, and may have a data_folder, and nothing else")
    try:
        folder = _path(given["data_folder"]) if "data_folder" in given else None
        return BenchQemu(name, _path(given["binary"]), folder)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _url(raw: object) -> str:
    # The value is not shown: it may have a password in it.
    if not isinstance(raw, str) or not raw.startswith(("sqlite:///", "postgresql")):
        raise ValueError("expects sqlite:////FOLDER/FILE or postgresql://USER@HOST/DATABASE")
    return raw


def _address(raw: object) -> str:
    import ipaddress  # noqa: PLC0415 - most invocations set none

    try:
        return str(ipaddress.ip_address(str(raw)))
    except ValueError:
        raise ValueError(f"expects an IP address, not {raw!r}") from None


_ACCEPT: Mapping[str, Callable[[object], object]] = {
    **CHECKS,
    "state_dir": _path,
    "service_name": _service_name,
    "runtime_dir": _path,
    "socket_path": _socket_path,
    "socket_group": _group,
    "database_url": _url,
    "jobs_database_url": _url,
    "listen_address": _address,
    "listen_port": integer(0, 65535),
    "tls_cert": _path,
    "tls_key": _path,
    "insecure_listen": truth,
    "allowed_hosts": list_of("host names", _HOST_NAME),
    "trusted_proxies": list_of("IP addresses", _PROXY),
    "connection_keys_dir": _path,
    "session_idle_minutes": integer(1, 24 * 60),
    "oidc": read_oidc,
    "allow_qmp_commands": list_of("QMP commands", _QMP_COMMAND),
    "allow_qom": list_of("types or TYPE.PROPERTY of QEMU's objects", _QOM),
    "packs": list_of("names or paths of packs", _PACK),
    "cpus": integers("numbers of CPUs", 8191),
    "sample_hz": number(0.1, 100),
    "sample_guest_pages": truth,
    "observe_migrations": truth,
    "max_body_bytes": integer(1 << 10, 64 << 20),
    "max_import_bytes": integer(1 << 10, 1 << 30),
    "bench_dir": _short_folder,
    "bench_scratch_dir": _path,
    "bench_live_dir": _short_folder,
    "bench_qemus": _qemus,
    "destination_command_line": truth,
    "host_changes": truth,
    "log_format": one_of(LOG_FORMATS),
    "log_level": one_of(LOG_LEVELS),
}
assert set(_ACCEPT) == {field.name for field in fields(Settings)}, "a setting without a check"
