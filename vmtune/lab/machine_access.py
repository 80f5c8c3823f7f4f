"""Who may use a machine's libvirt besides root: users by polkit, clients by TCP by SASL."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass

from vmtune.lab.host import HostPlan
from vmtune.lab.programs import run

PROGRAMS = ("dbus-daemon", "/usr/sbin/saslpasswd2", "/usr/lib/polkit-1/polkitd")
SASL_NAME = "vmtune"
_STEP_S = 20.0


@dataclass(frozen=True, slots=True)
class User:
    """A user of every machine, without password; each machine's SSH key opens it.

    :param groups: besides its own.
    """

    name: str
    uid: int
    groups: tuple[str, ...] = ()


USERS = (User("operator", 52001, ("libvirt",)), User("visitor", 52002))
"""One whom Debian's polkit rule lets manage libvirt, and one whom it does not."""

# Of the bus: no services that it could start, whose own service manager is missing.
_BUS = """\
<busconfig>
  <type>system</type>
  <user>messagebus</user>
  <fork/>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <includedir>/usr/share/dbus-1/system.d</includedir>
</busconfig>
"""
# Without TLS libvirt takes only what encrypts: of the mechanisms that need no Kerberos this one.
_SASL = "mech_list: digest-md5\nsasldb_path: /etc/libvirt/passwd.db\n"


def prepare_access(hosts: tuple[HostPlan, ...], allowed: str) -> None:
    """Write users, polkit's bus and SASL's passwords into the machines' roots.

    :param allowed: the SSH keys that open the users, a line each.
    :raise LabError: a program failed; see :data:`PROGRAMS`.
    """
    password = secrets.token_urlsafe(18)
    for host in hosts:
        _add_users(host, allowed)
        (host.upper / "etc/dbus-1").mkdir(parents=True)
        (host.upper / "etc/dbus-1/lab.conf").write_text(_BUS)
        (host.folder / "run/dbus").mkdir(mode=0o755)
        (host.upper / "etc/sasl2").mkdir(parents=True)
        (host.upper / "etc/sasl2/libvirt.conf").write_text(_SASL)
        run(
            [
                *("/usr/sbin/saslpasswd2", "-p", "-c", "-a", "libvirt", "-u", host.name),
                *("-f", str(host.folder / "etc/passwd.db"), SASL_NAME),
            ],
            doing=f"set the SASL password of {host.name}",
            timeout_s=_STEP_S,
            stdin=password,
        )
        auth = host.folder / "etc/auth.conf"
        auth.touch(mode=0o600)
        auth.write_text(
            f"[credentials-lab]\nauthname={SASL_NAME}\npassword={password}\n\n"
            "[auth-libvirt-default]\ncredentials=lab\n"
        )


def _add_users(host: HostPlan, allowed: str) -> None:
    upper, there = host.upper, host.base / "etc"
    texts = {name: (there / name).read_text() for name in ("passwd", "group", "shadow")}
    for user in USERS:
        home = f"/home/{user.name}"
        texts["passwd"] += f"{user.name}:x:{user.uid}:{user.uid}::{home}:/bin/sh\n"
        texts["shadow"] += f"{user.name}:*:19000:0:99999:7:::\n"
        texts["group"] = _with_member(texts["group"], user)
        ssh = upper / home.lstrip("/") / ".ssh"
        ssh.mkdir(mode=0o700, parents=True)
        (ssh / "authorized_keys").write_text(allowed)
        for path in (ssh.parent, ssh, ssh / "authorized_keys"):
            os.chown(path, user.uid, user.uid)
    for name, text in texts.items():
        written = upper / "etc" / name
        shutil.copy2(there / name, written)
        owner = (there / name).stat()
        os.chown(written, owner.st_uid, owner.st_gid)
        written.write_text(text)


def _with_member(groups: str, user: User) -> str:
    """The text of /etc/group with the user's own group, and the user in others."""
    lines = []
    for line in groups.splitlines():
        name, _, rest = line.partition(":")
        if name in user.groups:
            line += f"{'' if rest.endswith(':') else ','}{user.name}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join([*lines, f"{user.name}:x:{user.uid}:"]) + "\n"
