"""The package's units, under a systemd that has booted, beside a libvirtd that it runs.

One system goes through its life: the tests are of its stages, in their order.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.packages.booted import Booted
from tests.packages.test_deb import OLDER
from tests.support.hosts.two_hosts import certificates

pytestmark = pytest.mark.timeout(900, func_only=True)

OWN = "net/ipv4/ip_default_ttl"
"""A setting of the kernel that each network namespace has for itself, as optmem_max."""


def vmtune(system: Booted, *words: str) -> str:
    return system.run(f"vmtune {' '.join(words)}")


def test_installed_it_runs_at_once(system: Booted) -> None:
    told = system.run("dpkg -i /mnt/new.deb")
    assert "vmtune:" not in told
    for unit in ("vmtune.socket", "vmtune.service"):
        assert system.shown(unit, "ActiveState", "UnitFileState") == {
            "ActiveState": "active",
            "UnitFileState": "enabled",
        }
    # Without its file this one has nothing to do, and limits are the operator's to allow.
    assert system.shown("vmtune-host", "ConditionResult", "ActiveState") == {
        "ConditionResult": "no",
        "ActiveState": "inactive",
    }
    assert system.shown("vmtune-limits.path", "ActiveState") == {"ActiveState": "inactive"}
    assert "status:           ok" in vmtune(system, "health")
    vmtune(system, "profile create fast multifd=on multifd_channels=4")
    system.run("runuser -u nobody -- vmtune profile list", fails=True)
    assert system.run("systemctl is-system-running") == "running\n"


def test_the_journal_finds_messages_by_their_fields(system: Booted) -> None:
    said = system.run("journalctl -u vmtune VMTUNE_EVENT=ready -o json --no-pager | tail -n 1")
    found = json.loads(said)
    assert (found["_TRANSPORT"], found["PRIORITY"]) == ("journal", "6")
    assert found["SYSLOG_IDENTIFIER"] == "vmtune"
    assert found["VMTUNE_SOCKET"] == "/run/vmtune/vmtune.sock"
    assert re.match(r"ready .*\bsocket=/run/vmtune/vmtune\.sock\b", found["MESSAGE"])


def test_it_has_no_privileges(system: Booted) -> None:
    pid = system.shown("vmtune", "MainPID")["MainPID"]
    status = dict(
        line.split(":\t", 1) for line in system.run(f"cat /proc/{pid}/status").splitlines()
    )
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert system.run(f"stat -c %U /proc/{pid}") == "vmtune\n"
    # Its own root is read-only, but for its state.
    root = f"/proc/{pid}/root"
    assert not system.run(f"findmnt -n -o OPTIONS -N {pid} / | grep -o '^rw' || true").strip()
    system.run(f"test -w {root}/var/lib/vmtune")


def test_reload_and_restart_and_death(system: Booted) -> None:
    def main() -> str:
        return system.shown("vmtune", "MainPID")["MainPID"]

    first = main()
    system.run("systemctl reload vmtune")
    assert main() == first
    system.run("systemctl restart vmtune")
    assert main() not in (first, "0")
    system.run("systemctl kill --signal KILL vmtune.service")
    system.until("test $(systemctl show -P NRestarts vmtune) = 1", "it to be started again")
    assert "fast" in vmtune(system, "profile list")


def test_whoever_asks_wakes_it(system: Booted) -> None:
    system.run("systemctl stop vmtune.service")
    assert system.shown("vmtune", "ActiveState") == {"ActiveState": "inactive"}
    assert "fast" in vmtune(system, "profile list")
    assert system.shown("vmtune", "ActiveState") == {"ActiveState": "active"}


def test_the_tutorials_certificates_let_it_in_by_tls(system: Booted) -> None:
    """As the tutorial of two hosts has it, by the release's own sockets: its user has the group of
    the key, and its unit may read it."""
    system.run("echo 127.0.0.1 booted >>/etc/hosts")
    system.run(certificates("booted"))
    assert system.shown("libvirtd-tls.socket", "ActiveState", "UnitFileState") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
    }
    uri = "qemu+tls://booted/system"
    asked = system.run(f"runuser -u vmtune -- virsh -c {uri} hostname")
    assert asked == system.run("virsh -c qemu:///system hostname")
    system.run(f"runuser -u nobody -- virsh -c {uri} hostname", fails=True)
    vmtune(system, f"host add by-tls {uri}")
    told = vmtune(system, "host check by-tls")
    assert "the server's certificate is valid until" in told
    assert "nothing failed" in told
    vmtune(system, "host remove by-tls")


def test_its_user_reaches_libvirt(system: Booted) -> None:
    kind = "kvm" if Path("/dev/kvm").exists() else "qemu"
    system.run(f"""cat >/root/guest.xml <<END
<domain type='{kind}'><name>guest</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os>
<cpu mode='custom' match='exact' check='none'><model fallback='allow'>qemu64</model></cpu>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>
END
virsh define /root/guest.xml && virsh start guest""")
    vmtune(system, "host add here qemu:///system")
    vmtune(system, "assign add fast --vm guest")
    vm = json.loads(vmtune(system, "--json vm show guest"))
    assert (vm["state"], vm["host"]) == ("running", "here")
    planned = system.run("vmtune plan guest || [ $? = 2 ]")
    assert "2 values would change" in planned
    # Nobody but root and libvirt's QEMU may look into libvirt's QEMU.
    assert "memory maps:       unknown" in vmtune(system, "vm show guest")


def test_the_hook_asks_it(system: Booted) -> None:
    hook = "/etc/libvirt/hooks/qemu.d/vmtune"
    system.run(f"virsh dumpxml guest | {hook} guest migrate begin - >/root/answer 2>/root/told")
    assert system.run("cat /root/told") == ""
    # libvirt runs it at each step of a VM's life: it has nothing against any.
    system.run("virsh destroy guest; virsh start guest; virsh destroy guest; virsh undefine guest")


def test_the_operators_limits_are_set_and_set_again(system: Booted) -> None:
    for value, verb in ((71, "start"), (72, "reload")):
        system.run(f"echo net.ipv4.ip_default_ttl = {value} >/etc/vmtune/host.conf")
        system.run(f"systemctl {verb} vmtune-host")
        assert system.run(f"cat /proc/sys/{OWN}") == f"{value}\n"
    system.run("rm /etc/vmtune/host.conf")


def test_the_service_has_limits_raised_by_root_and_put_back(system: Booted) -> None:
    limit = "/proc/sys/net/core/optmem_max"
    if system.run(f"[ -e {limit} ] || echo none").strip():
        pytest.skip("this kernel has net.core.optmem_max for all network namespaces together")
    before = int(system.run(f"cat {limit}"))
    refused = system.run(
        f"vmtune host limits here net_core_optmem_max_bytes={before + 1}", fails=True
    )
    assert "host_changes" in refused
    system.run("""echo 'host_changes = true' >>/etc/vmtune/vmtune.toml
        systemctl enable --now vmtune-limits.path
        systemctl restart vmtune""")
    vmtune(system, f"host limits here net_core_optmem_max_bytes={before + 1}")
    assert int(system.run(f"cat {limit}")) == before + 1
    assert str(before + 1) in system.run("cat /etc/sysctl.d/99-vmtune.conf")
    vmtune(system, "host limits here --restore")
    assert int(system.run(f"cat {limit}")) == before
    system.run("[ ! -e /etc/sysctl.d/99-vmtune.conf ]")


def test_an_upgrade_has_it_running_again(system: Booted) -> None:
    pid = system.shown("vmtune", "MainPID")["MainPID"]
    system.run(f"{OLDER}; dpkg -i /mnt/new.deb")
    assert system.shown("vmtune", "ActiveState", "MainPID")["ActiveState"] == "active"
    assert system.shown("vmtune", "MainPID")["MainPID"] not in (pid, "0")
    assert "fast" in vmtune(system, "profile list")
    assert system.shown("vmtune-limits.path", "ActiveState") == {"ActiveState": "active"}


def test_purged_it_leaves_nothing_that_runs_or_stays(system: Booted) -> None:
    system.run("dpkg --purge vmtune")
    assert system.run("systemctl --all --no-legend --plain list-units 'vmtune*'") == ""
    assert system.run("grep -ls /usr/bin/[v]mtune /proc/[0-9]*/cmdline || true") == ""
    system.run("! getent passwd vmtune && ! getent group vmtune")
    left = system.run(
        "find /etc /run /usr /var -xdev -iname '*vmtune*' ! -path '/var/log/*' -print; "
        "find /run -iname '*vmtune*' -print"
    )
    assert left == ""
    assert system.run("systemctl is-system-running") == "running\n"
