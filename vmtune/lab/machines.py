"""Hosts with a root of their own: keys and certificates before they start.

Each machine's root is an overlay of this machine's. What differs is written
into its upper layer, so that it is there from the first moment on.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from vmtune.errors import LabError, Problem
from vmtune.lab.host import HostPlan
from vmtune.lab.machine_access import PROGRAMS as ACCESS_PROGRAMS
from vmtune.lab.machine_access import prepare_access
from vmtune.lab.programs import run
from vmtune.lab.settings import LabSettings

PROGRAMS = (
    *("nsenter", "openssl", "pivot_root", "ssh", "ssh-keygen", "/usr/sbin/sshd"),
    *ACCESS_PROGRAMS,
)
_THERE = ("/usr/sbin/sshd", "/usr/bin/dbus-daemon", "/usr/lib/polkit-1/polkitd")
"""What :file:`start_host.sh` runs on a machine, besides libvirt's daemon."""
# Of the machine beneath nothing of these is seen: they hold its own keys.
_OPAQUE = ("etc/ssh", "etc/pki", "root/.ssh")
_AUTHORITY = "ca"
_STEP_S = 20.0
_VALID_DAYS = "2"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def sshd_config(host: HostPlan) -> str:
    """The daemon of a machine: keys only, on the management network only."""
    return f"""\
ListenAddress {host.address}
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
Subsystem sftp internal-sftp
"""


def has_machines(folder: Path) -> bool:
    """Whether the hosts of the lab in *folder* have roots of their own."""
    return (folder / _AUTHORITY).exists()


def as_built(settings: LabSettings) -> LabSettings:
    """*settings*, with as many hosts, and machines or not, as there are in its folder: who asks
    need not say again how the lab was brought up."""
    machines = has_machines(settings.folder)
    three = machines and (settings.folder / "c").exists()
    return replace(settings, machines=machines, hosts=3 if three else 2)


def require_bases(settings: LabSettings) -> None:
    """Make sure that the roots of other releases have what a machine runs.

    :raise LabError: with a problem for each root that lacks something.
    """
    problems = []
    for which in settings.named("root"):
        base = Path(getattr(settings, which))
        wanted = (*_THERE, str(settings.daemon), str(settings.qemu))
        missing = [path for path in wanted if not (base / path.lstrip("/")).exists()]
        if base != Path("/") and missing:
            remedy = "name a root of a release with libvirt, QEMU, OpenSSH's server, D-Bus, polkit"
            message = f"{base} has no {', '.join(missing)}"
            problems.append(Problem(which, "program_missing", message, remedy))
    if problems:
        raise LabError("a machine cannot be made of that root", problems=problems)


def prepare_machines(hosts: tuple[HostPlan, ...], folder: Path) -> None:
    """Write what the machines have in their roots: a CA, certificates, keys, users.

    :param folder: the lab's; the CA's own key stays in its folder ``ca``.
    :raise LabError: a program failed; see :data:`PROGRAMS`.
    """
    authority = folder / _AUTHORITY
    authority.mkdir(mode=0o700)
    _openssl(
        *("req", "-x509", *_CURVE, "-days", _VALID_DAYS, "-subj", "/CN=vmtune lab CA"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", str(authority / "key.pem"), "-out", str(authority / "cert.pem")),
    )
    for host in hosts:
        _prepare_root(host)
        _certificates(host, authority)
        _keys(host)
    known = "".join(f"{host.name},{host.address} {_public_key(host)}\n" for host in hosts)
    allowed = "".join(_text(host.upper / "root/.ssh/id_ed25519.pub") for host in hosts)
    for host in hosts:
        (host.upper / "root/.ssh/known_hosts").write_text(known)
        (host.upper / "root/.ssh/authorized_keys").write_text(allowed)
    prepare_access(hosts, allowed)


def _prepare_root(host: HostPlan) -> None:
    for part in ("root", "work", "upper"):
        (host.folder / part).mkdir(mode=0o755)
    (host.folder / "run" / "sshd").mkdir(mode=0o755)
    for part in _OPAQUE:
        hidden = host.upper / part
        hidden.mkdir(parents=True)
        os.setxattr(hidden, "trusted.overlay.opaque", b"y")
    for part in ("root", "root/.ssh"):
        (host.upper / part).chmod(0o700)
    (host.upper / "etc/ssh/sshd_config").write_text(sshd_config(host))


def _keys(host: HostPlan) -> None:
    for file in ("etc/ssh/ssh_host_ed25519_key", "root/.ssh/id_ed25519"):
        run(
            [
                *("ssh-keygen", "-q", "-t", "ed25519", "-N", ""),
                *("-C", host.name, "-f", str(host.upper / file)),
            ],
            doing=f"make the SSH keys of {host.name}",
            timeout_s=_STEP_S,
        )


def _certificates(host: HostPlan, authority: Path) -> None:
    """One certificate a host, as server and as client, for libvirt and for QEMU."""
    libvirt, qemu = host.upper / "etc/pki/libvirt", host.upper / "etc/pki/qemu"
    private, trusted = libvirt / "private", host.upper / "etc/pki/CA"
    for made in (private, qemu, trusted):
        made.mkdir(parents=True)
    key, certificate = private / "serverkey.pem", libvirt / "servercert.pem"
    names = [f"DNS:{host.name}", f"IP:{host.address}", f"IP:{host.migration_address}"]
    _openssl(
        *("req", "-x509", *_CURVE, "-days", _VALID_DAYS, "-subj", f"/CN={host.name}"),
        *("-CA", str(authority / "cert.pem"), "-CAkey", str(authority / "key.pem")),
        *("-addext", f"subjectAltName={','.join(dict.fromkeys(names))}"),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-addext", "keyUsage=critical,digitalSignature,keyEncipherment"),
        *("-addext", "extendedKeyUsage=serverAuth,clientAuth"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    key.chmod(0o600)
    shutil.copy2(authority / "cert.pem", trusted / "cacert.pem")
    shutil.copy2(authority / "cert.pem", qemu / "ca-cert.pem")
    shutil.copy2(key, private / "clientkey.pem")
    shutil.copy2(certificate, libvirt / "clientcert.pem")
    for which in ("server", "client"):
        shutil.copy2(key, qemu / f"{which}-key.pem")
        shutil.copy2(certificate, qemu / f"{which}-cert.pem")


def _openssl(*arguments: str) -> None:
    run(["openssl", *arguments], doing="make the lab's certificates", timeout_s=_STEP_S)


def _public_key(host: HostPlan) -> str:
    kind, key, *_comment = _text(host.upper / "etc/ssh/ssh_host_ed25519_key.pub").split()
    return f"{kind} {key}"


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii")
