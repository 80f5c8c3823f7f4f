"""The Debian package: it installs, runs, is upgraded and goes away again."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.packages.conftest import CHECKOUT, Root

pytestmark = pytest.mark.timeout(900, func_only=True)

DUMPS = CHECKOUT / "tests" / "data" / "store"

# What the units do, without systemd.
SERVE = """
install -d -o vmtune -g vmtune -m 755 /run/vmtune
as_vmtune="setpriv --reuid=vmtune --regid=vmtune --init-groups env HOME=/var/lib/vmtune"
$as_vmtune /usr/bin/vmtune db upgrade --quiet
$as_vmtune /usr/bin/vmtune serve >/tmp/.service.log 2>&1 & service=$!
for _ in $(seq 1200); do [ ! -S /run/vmtune/vmtune.sock ] || break; sleep 0.1; done
[ -S /run/vmtune/vmtune.sock ] || { cat /tmp/.service.log; exit 1; }
curl() { command curl -sSf --unix-socket /run/vmtune/vmtune.sock "$@"; }
"""
STOP = """
kill $service
wait $service
"""


# As if an older version were installed.
OLDER = "sed -i '/^Package: vmtune$/,/^Version:/s/^Version:.*/Version: 0.0.1/' /var/lib/dpkg/status"

UNITS = (
    *("vmtune.service", "vmtune.socket", "vmtune.slice", "vmtune-host.service"),
    *("vmtune-limits.path", "vmtune-limits.service"),
)


def test_it_installs_and_serves_without_a_network(root: Root) -> None:
    shown = root.run(
        SERVE
        + """
        curl http://vmtune/ >/mnt/page.html
        asset=$(grep -o '/assets/[^"]*[.]js' /mnt/page.html | head -n 1)
        curl -o /dev/null -w '%{http_code} %{content_type}\\n' "http://vmtune$asset"
        curl http://vmtune/api/v1/health >/mnt/health.json
        vmtune profile create fast multifd=on multifd_channels=4
        vmtune --json profile show fast >/mnt/profile.json
        runuser -u nobody -- vmtune profile list && exit 1
        """
        + STOP
    )
    page = (root.shared / "page.html").read_text()
    assert '<div id="root">' in page
    assert "200 text/javascript" in shown.stdout
    assert json.loads((root.shared / "health.json").read_text())["status"] == "ok"
    values = json.loads((root.shared / "profile.json").read_text())["values"]
    assert values == {"multifd": True, "multifd_channels": 4}
    assert "Traceback" not in shown.stderr
    assert "not allowed" in shown.stderr or "socket" in shown.stderr


def test_it_brings_what_it_needs_for_the_release(root: Root) -> None:
    root.run(
        "/usr/lib/vmtune/bin/python3 -I -c 'import libvirt, libvirt_qemu, numpy, scipy.stats, "
        "psycopg, uvloop, authlib, httpx2, dbos, prometheus_client, "
        "opentelemetry.exporter.otlp.proto.http'"
    )
    listed = root.run("dpkg -L vmtune").stdout.split()
    for needed in (
        "/usr/bin/vmtune",
        "/usr/lib/sysusers.d/vmtune.conf",
        "/usr/share/bash-completion/completions/vmtune",
        "/usr/share/doc/vmtune/copyright",
        "/usr/share/man/man1/vmtune.1.gz",
        "/usr/share/man/man1/vmtune-migrate.1.gz",
        "/usr/share/vmtune/monitoring/grafana-dashboard.json",
    ):
        assert needed in listed, needed
    for unit in UNITS:
        assert any(path.endswith(f"/systemd/system/{unit}") for path in listed), unit
    conffiles = root.run("cat /var/lib/dpkg/info/vmtune.conffiles").stdout.split()
    assert sorted(conffiles) == ["/etc/libvirt/hooks/qemu.d/vmtune", "/etc/vmtune/vmtune.toml"]
    enabled = root.run("find /etc/systemd/system -name 'vmtune*' -printf '%P\\n'").stdout.split()
    assert "multi-user.target.wants/vmtune.service" in enabled
    assert "sockets.target.wants/vmtune.socket" in enabled
    # Whether limits are raised is the operator's to say.
    assert not any("vmtune-limits" in name for name in enabled)
    # Nothing says where it was built.
    root.run("! grep -rlI -e /vmtune/debian -e vmtune-deb /usr/lib/vmtune /usr/bin/vmtune")
    root.run("bash -c '. /usr/share/bash-completion/completions/vmtune; complete -p vmtune'")


def test_the_releases_own_systemd_has_nothing_against_the_units(root: Root) -> None:
    told = root.run(f"systemd-analyze verify --man=no {' '.join(UNITS)} 2>&1 || true").stdout
    assert [line for line in told.splitlines() if "vmtune" in line] == []
    root.run("systemd-analyze security --offline=yes --threshold=25 vmtune.service >/dev/null")


def test_the_user_has_what_it_needs_and_no_more(root: Root) -> None:
    assert set(root.run("id -nG vmtune").stdout.split()) == {"vmtune", "libvirt", "kvm"}
    shell = root.run("getent passwd vmtune").stdout.strip()
    assert shell.endswith(":/var/lib/vmtune:/usr/sbin/nologin")
    assert root.run("stat -c '%U %a' /var/lib/vmtune").stdout == "vmtune 750\n"
    own = "find / -xdev -path /proc -prune -o -user vmtune ! -path '/var/lib/vmtune*' -print"
    assert root.run(own).stdout == "", "only its state is its own"


def test_the_hook_lets_everything_be_without_the_service(root: Root) -> None:
    hook = "/etc/libvirt/hooks/qemu.d/vmtune"
    assert root.run(f"stat -c '%U:%G %a' {hook}").stdout == "root:root 755\n"
    for words in ("migrate begin -", "start begin -", "reconnect begin -", "stopped end failed"):
        assert root.run(f"echo '<domain/>' | {hook} guest {words}").stdout == ""


def test_an_upgrade_keeps_data_and_changes_and_brings_the_schema_up(root: Root) -> None:
    shutil.copy(DUMPS / "0001.sql", root.shared)
    (root.shared / "load.py").write_text(
        "import sqlite3\n"
        "with open('/mnt/0001.sql') as dump, "
        "sqlite3.connect('/var/lib/vmtune/vmtune.db') as database:\n"
        "    database.executescript(dump.read())\n"
    )
    root.run(
        OLDER
        + """
        echo 'sample_hz = 5.0' >>/etc/vmtune/vmtune.toml
        sed -i s/limit_ms=1000/limit_ms=500/ /etc/libvirt/hooks/qemu.d/vmtune
        runuser -u vmtune -- /usr/lib/vmtune/bin/python3 -I /mnt/load.py
        runuser -u vmtune -- vmtune db current && exit 1 || [ $? = 2 ]
        """
    )
    upgraded = root.run("dpkg -i /mnt/new.deb && runuser -u vmtune -- vmtune db current")
    assert "over (0.0.1)" in upgraded.stdout
    assert "vmtune:" not in upgraded.stderr, upgraded.stderr
    root.run(SERVE + "vmtune --json profile show tuned >/mnt/profile.json" + STOP)
    values = json.loads((root.shared / "profile.json").read_text())["values"]
    assert values == {"multifd": True, "multifd_channels": 8}
    root.run("grep 'sample_hz = 5.0' /etc/vmtune/vmtune.toml")
    root.run("grep limit_ms=500 /etc/libvirt/hooks/qemu.d/vmtune")
    assert root.run("stat -c %U /var/lib/vmtune/vmtune.db").stdout == "vmtune\n"


def test_an_upgrade_goes_on_where_the_database_cannot_be_reached(root: Root) -> None:
    told = root.run(
        """
        echo 'database_url = "postgresql://vmtune@127.0.0.1:1/vmtune"' >>/etc/vmtune/vmtune.toml
        /var/lib/dpkg/info/vmtune.postinst configure 0.0.1"""
    )
    assert "vmtune: the database was not upgraded" in told.stderr
    assert "Traceback" not in told.stderr


def test_removed_it_keeps_data_and_purged_it_leaves_nothing(root: Root, empty: Root) -> None:
    root.run(SERVE + "vmtune profile create fast multifd=on; vmtune bench --help" + STOP)
    root.run(
        """cp /var/lib/dpkg/info/vmtune.p* /root
        dpkg --remove vmtune
        [ -e /var/lib/vmtune/vmtune.db ] && [ -e /etc/vmtune/vmtune.toml ]
        [ ! -e /usr/lib/vmtune ] && [ ! -e /usr/bin/vmtune ]
        echo '<domain/>' | /etc/libvirt/hooks/qemu.d/vmtune guest migrate begin -
        dpkg --purge vmtune
        /root/vmtune.postrm purge
        rm /root/vmtune.p* /tmp/.service.log"""
    )
    before, after = empty.files(), root.files()
    differ = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not differ, {path: (before.get(path), after.get(path)) for path in differ}


def test_what_was_removed_can_be_installed_again(root: Root) -> None:
    root.run(
        """
        runuser -u vmtune -- vmtune db upgrade
        dpkg --remove vmtune; dpkg -i /mnt/new.deb
        runuser -u vmtune -- vmtune db current
        /var/lib/dpkg/info/vmtune.postinst configure 0.0.1"""
    )
