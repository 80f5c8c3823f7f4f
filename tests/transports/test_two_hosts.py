"""The tutorial of the first two real hosts, followed word by word on two fresh lab machines.

Their firewalls are closed but for SSH, and they have no certificates. Two commands have a stand-in,
since a machine of the lab has this machine's packages and no systemd: apt-get looks whether what it
is to install is installed, and systemctl stops and starts libvirt's daemon.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from tests.support.hosts.live import Live, at_work, wait_for
from tests.support.hosts.machines import (
    by_its_bus,
    on,
    packaged_machines,
    said,
    why_no_machines,
    why_not_packaged,
)
from tests.support.hosts.two_hosts import blocks
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.model.workload import Workload

NONE = why_no_machines() or why_not_packaged()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
FRESH = """
rm -rf /etc/pki/* /etc/libvirt/auth.conf
sed -i /migration_host/d /etc/libvirt/qemu.conf
iptables -A INPUT -i lo -j ACCEPT
iptables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -A INPUT -p tcp --dport 22 -j ACCEPT
iptables -P INPUT DROP
cat > /usr/local/bin/apt-get <<'END'
#!/bin/sh
set -eu
for word; do
    case $word in install | --yes | *.deb) ;; *) dpkg --status "$word" > /dev/null ;; esac
done
END
cat > /usr/local/bin/systemctl <<'END'
#!/bin/sh
case $* in
    'stop libvirtd')
        pid=$(cat /run/libvirtd.pid)
        kill "$pid"
        while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done ;;
    'enable --now libvirtd-tls.socket') ;;
    'start libvirtd') exec /usr/sbin/libvirtd --daemon --listen --pid-file /run/libvirtd.pid ;;
    *) exit 1 ;;
esac
END
cat > /usr/local/bin/vmtune <<END
#!/bin/sh
exec PYTHON -m vmtune "\\$@"
END
chmod 755 /usr/local/bin/*
"""

SESSION = """
export PATH=/usr/local/bin:$PATH
cd "$(cat /tmp/folder 2> /dev/null || echo /root)"
{script}
pwd > /tmp/folder
"""
"""Each block in the folder where the one before has ended."""


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with packaged_machines() as made:
        for host in made.status.hosts:
            said(host, "sh", "-ec", FRESH.replace("PYTHON", sys.executable))
        yield made


def test_word_by_word(live: Live) -> None:
    a, b = map(by_its_bus, live.status.hosts)
    closed = {"name": "rack8", "uri": f"qemu+tls://{b.name}/system"}
    with pytest.raises(Refused):
        live.client.post("/hosts", closed)
    vm = lab.define_vm(live.settings, lab.VmSettings(name="web1", workload=CALM))
    wait_for(lambda: at_work(vm), "the guest to write")
    told = []
    for block in blocks():
        script = block.replace("rack7", a.name).replace("rack8", b.name)
        # It exits 2 where values would change, as they do here.
        script = re.sub(r"^(vmtune plan .*)$", r"\1 || [ $? = 2 ]", script, flags=re.M)
        done = on(a, "sh", "-euc", SESSION.format(script=script), within_s=300)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        told.append(done.stdout)
    health, names, *_, rights, checked, migrated = told
    assert "ok" in health
    assert {a.name, b.name} <= set(names.split())
    assert rights.split() == [a.name, b.name, b.name, a.name]
    assert "nothing failed" in checked
    assert migrated.count("completed") >= 2
    assert live.states(vm) == {"a": "running"}
    for record in live.client.get("/migrations")["items"]:
        assert record["state"] == "completed", record["failure"]
        proven = {each["tunable"]: each["status"] for each in record["outcomes"]}
        assert proven["tls"] == proven["multifd_channels"] == "effective", record["outcomes"]


def test_a_firewall_that_drops_what_migrations_need_is_told(live: Live) -> None:
    a, b = map(by_its_bus, live.status.hosts)
    rule = "INPUT -p tcp -m multiport --dports 49152:49215 -j DROP"
    said(b, "sh", "-c", f"iptables -I {rule}")
    try:
        words = ("vmtune", "host", "check", a.name, "--to", b.name)
        told = said(a, "sh", "-c", f"/usr/local/bin/{' '.join(words)}")
    finally:
        said(b, "sh", "-c", f"iptables -D {rule}")
    assert f"port 49215 of {b.name}" in told
    assert "nothing answers within 3 s" in told
    assert f"open ports 49152 to 49215 in the firewall of {b.name}" in told


def test_polkits_rule_is_that_of_the_page(live: Live) -> None:
    """Without the rule of libvirt's package, the page's lets vmtune in."""
    a = by_its_bus(live.host("a"))
    (rule,) = blocks("js")
    words = ("runuser", "-u", "vmtune", "--", "virsh", "-c", "qemu:///system", "hostname")
    said(a, "mv", "/usr/share/polkit-1/rules.d/60-libvirt.rules", "/root")
    wait_for(lambda: on(a, *words).returncode != 0, "polkit to forget its rule")
    assert "polkit" in on(a, *words).stderr
    there = live.settings.folder / "rule"
    there.write_text(rule)
    said(a, "install", "-D", "-m", "644", str(there), "/etc/polkit-1/rules.d/60-libvirt.rules")
    wait_for(lambda: on(a, *words).returncode == 0, "polkit to read the rule")
