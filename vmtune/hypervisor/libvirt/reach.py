"""Why a host cannot be reached, told from the words of libvirt, ssh and GnuTLS, and what mends it.

libvirt's error numbers do not tell the causes apart: with ``qemu+ssh`` each is a system error
whose text is what ssh wrote. The texts were seen with libvirt 11.3 and OpenSSH 9.2 in the lab,
where they are provoked again by the tests; the rows whose text was only read in libvirt's sources
say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

PORTS = {"ssh": 22, "libssh": 22, "libssh2": 22, "tls": 16514, "tcp": 16509}
"""Where each transport connects to unless the URI says so (src/remote/remote_driver.c)."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a host is not reached.

    :param says: a pattern of the text in which it shows.
    :param cause: what is wrong, with the place of the host as ``{server}``, ``{port}``.
    :param remedy: what to do; also ``{login}`` and ``{identity}`` for ssh, ``{verify}`` for TLS.

    Both name who did not reach it as ``{who}``, ``{machine}`` and ``{here}``, see :class:`Seeker`.
    """

    says: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Seeker:
    """Who did not reach a host.

    :param who: the user whose keys count, and *machine* where that one is.
    :param here: that machine, as the end of a sentence.
    """

    who: str
    machine: str
    here: str


SERVICE = Seeker("vmtune's user", "the service's machine", "here")
SOURCE = Seeker("root on the source host", "the source host", "on the source host")
"""Of a migration, whose libvirt daemon connects to the destination's."""

CAUSES = (
    Cause(
        "REMOTE HOST IDENTIFICATION HAS CHANGED|host key has changed",
        "the SSH host key of {server} is not the one that is known",
        "ask whether {server} was installed anew; if so, run `ssh-keygen -R {server}` and "
        "`ssh {login} true` as {who}",
    ),
    Cause(
        "Host key verification failed|Can't verify the session host key|Host key not found|"
        "no suitable callback|was not accepted",
        "SSH does not know the host key of {server}",
        "run `ssh {login} true` as {who} once, and compare the key with that of "
        "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on {server}",
    ),
    Cause(
        r"Permission denied \(|Access denied: |no more authentication methods|"
        "authentication methods with credentials were rejected",
        "{server} does not accept the SSH key of {who}",
        "run `ssh-copy-id {identity}{login}` as {who}; `ssh {login} true` has to work "
        "without a question",
    ),
    Cause(
        "Could not resolve hostname|[Uu]nable to resolve address|Name or service not known|"
        "Temporary failure in name resolution",
        "the name {server} is not known {here}",
        "add {server} to DNS or to /etc/hosts of {machine}: "
        "`getent hosts {server}` has to print its address",
    ),
    Cause(
        # virtproxyd answers, and finds no virtqemud behind it; or nobody answers at all.
        "(cannot connect|Failed to connect socket) to '[^']*libvirt[^']*'.*"
        "(Connection refused|No such file)",
        "libvirt's daemon does not run on {server}",
        "run `systemctl start libvirtd.socket` on {server}, or `virtqemud.socket` where libvirt "
        "has one daemon for each driver",
    ),
    Cause(
        "libvirt-sock.*Permission denied|no polkit agent|no agent is available|"
        "access denied by policy",
        "the user of {login} may not use libvirt on {server}",
        "run `usermod --append --groups libvirt {user}` on {server}, or add a polkit rule for "
        "org.libvirt.unix.manage",
    ),
    Cause(
        r"(virt-ssh-helper|nc|netcat): (command )?not found",
        "{server} has neither virt-ssh-helper nor nc, by which libvirt is reached over SSH",
        "install libvirt's daemon package on {server} (Debian: libvirt-daemon-common)",
    ),
    Cause(
        "Connection refused|Connection reset by peer during",
        "nothing takes connections at port {port} of {server}",
        "{listen}",
    ),
    Cause(
        "No route to host|Network is unreachable|Connection timed out|Operation timed out",
        "{server} does not answer on the network",
        "check that {server} is up and the route to it: `ping {server}`",
    ),
    Cause(
        "client certificate [^ ]* (has expired|is not yet active)",
        "the client certificate of {machine} is not valid today",
        "have the CA of {server} sign a new /etc/pki/libvirt/clientcert.pem; "
        "`openssl x509 -noout -dates -in /etc/pki/libvirt/clientcert.pem` shows its dates",
    ),
    Cause(
        "Our own certificate",
        "the client certificate of {machine} is not valid",
        "have the CA of {server} sign /etc/pki/libvirt/clientcert.pem; its CA belongs into "
        "/etc/pki/CA/cacert.pem",
    ),
    Cause(
        "Failed to verify peer's certificate|certificate.*(expired|revoked|issuer|hostname)",
        "the certificate of {server} is not one for {server} that our CA has signed and that is "
        "valid today",
        "{verify} shows which; /etc/pki/libvirt/servercert.pem on {server} is what it presents",
    ),
    Cause(
        # Seen where the server refuses the client's certificate, and hangs up.
        "Unable to read TLS confirmation|Failed to verify client's certificate|"
        "server verification \\(of our certificate or IP address\\) failed",
        "{server} does not accept the client certificate of {machine}",
        "have the CA of {server} sign /etc/pki/libvirt/clientcert.pem; the log of its daemon says "
        "whether that has expired, is revoked (/etc/pki/CA/cacrl.pem) or is not in "
        "tls_allowed_dn_list of libvirtd.conf",
    ),
    Cause(
        "Cannot read (CA|client) certificate|(cacert|clientcert|clientkey).pem",
        "{machine} has no client certificate for libvirt",
        "put the CA's certificate to /etc/pki/CA/cacert.pem, and a certificate with its key to "
        "/etc/pki/libvirt/clientcert.pem and /etc/pki/libvirt/private/clientkey.pem",
    ),
    Cause(
        "authentication failed: authentication failed",
        "{server} does not accept the name and password of {machine}",
        "correct them in /etc/libvirt/auth.conf; on {server}, "
        "`sasldblistusers2 -f /etc/libvirt/passwd.db` lists the names, and "
        "`saslpasswd2 -a libvirt NAME` sets a password",
    ),
    Cause(
        "SASL|authentication failed: Failed to|no mechanism available",
        "{server} wants a name and a password, for which nobody can be asked",
        "write them to /etc/libvirt/auth.conf of {machine}, or use SSH or TLS",
    ),
)
"""In this order; the first whose text is there counts."""

_LISTEN = {
    "ssh": "run `systemctl start ssh` (or `sshd`) on {server}, and open port {port} in its "
    "firewall",
    "tls": "run `systemctl start libvirtd-tls.socket` (or `virtproxyd-tls.socket`) on {server}, "
    "and open port {port} in its firewall",
    "tcp": "run `systemctl start libvirtd-tcp.socket` (or `virtproxyd-tcp.socket`) on {server}, "
    "or use SSH or TLS, which are encrypted",
}
_SILENT = {
    "ssh": "see which of these hangs, as {who}: `getent hosts {server}` (DNS), "
    "`ssh {login} true` (network, sshd), `ssh {login} virsh -c qemu:///system list` (libvirt)",
    "tls": "see which of these hangs: `getent hosts {server}` (DNS), {verify} (network), and on "
    "{server} `virsh -c qemu:///system list` (libvirt)",
    "tcp": "see which of these hangs: `getent hosts {server}` (DNS), "
    "`bash -c '</dev/tcp/{server}/{port}'` (network), and on {server} "
    "`virsh -c qemu:///system list` (libvirt)",
}
_LONGEST = 300
_BANNER = re.compile(r"@{2,}|(?<=\s)@(?=\s)")
_NOISE = re.compile(r"^(Cannot recv data: |End of file while reading data: |internal error: )")
_TAIL = re.compile(r": (Connection reset by peer|Input/output error)$")


@dataclass(frozen=True, slots=True)
class Remote:
    """The parts of a URI that names another machine.

    :param transport: ``ssh``, ``tls``, ``tcp``, ``libssh`` or ``libssh2``.
    :param login: as ssh takes it.
    """

    transport: str
    server: str
    port: int
    login: str
    keyfile: str = ""
    pkipath: str = ""

    @classmethod
    def of(cls, uri: str) -> Remote | None:
        """That of *uri*; None where libvirt is on this machine."""
        split = urlsplit(uri)
        if not split.hostname:
            return None
        transport = split.scheme.partition("+")[2] or "tls"
        login = f"{split.username}@{split.hostname}" if split.username else split.hostname
        port = split.port or PORTS.get(transport, 0)
        given = parse_qs(split.query)
        files = (given.get(name, [""])[0] for name in ("keyfile", "pkipath"))
        return cls(transport, split.hostname, port, login, *files)


def explain(uri: str, message: str, seeker: Seeker = SERVICE) -> tuple[str, str] | None:
    """The cause and its remedy, as far as *message* is known.

    :param message: libvirt's.
    :param seeker: who did not reach what *uri* names.
    :return: None for texts that no row has, and for libvirt on this machine.
    """
    remote = Remote.of(uri)
    if remote is None:
        return None
    for row in CAUSES:
        if re.search(row.says, message, re.DOTALL):
            words = _words(remote, seeker)
            words["listen"] = _LISTEN.get(words["kind"], _LISTEN["ssh"]).format_map(words)
            return row.cause.format_map(words), row.remedy.format_map(words)
    return None


def silent(uri: str) -> str:
    """What shows where the way to *uri* ends, when nothing answered in time."""
    remote = Remote.of(uri)
    if remote is None:
        return "look at libvirt's daemon on this machine: `virsh -c qemu:///system list` hangs, too"
    words = _words(remote, SERVICE)
    return _SILENT.get(words["kind"], _SILENT["tcp"]).format_map(words)


def _words(remote: Remote, seeker: Seeker) -> dict[str, str]:
    verify = (
        f"`openssl s_client -connect {remote.server}:{remote.port} "
        f"-CAfile /etc/pki/CA/cacert.pem -verify_hostname {remote.server}`"
    )
    return {
        "server": remote.server,
        "port": str(remote.port),
        "login": remote.login,
        "user": remote.login.rpartition("@")[0] or "USER",
        "identity": f"-i {remote.keyfile} " if remote.keyfile else "",
        "kind": "ssh" if "ssh" in remote.transport else remote.transport,
        "verify": verify,
        "who": seeker.who,
        "machine": seeker.machine,
        "here": seeker.here,
    }


def said(message: str) -> str:
    """libvirt's *message* in one line, without what wraps each failure of ssh alike."""
    text = " ".join(_BANNER.sub(" ", message).split())
    return _TAIL.sub("", _NOISE.sub("", text))[:_LONGEST]
