"""Nova's libvirt driver of one host, which migrates instances as nova-compute has it do; run by
Nova's Python.

    nova_program.py URI            of the host's libvirt

It reads orders, each a line of JSON, and answers each with a line of JSON: how it ended. An order
has ``dest`` (the destination's address), ``vm`` (UUID), ``memory_mb``, ``options`` (of nova.conf's
section libvirt), and ``then``: what an operator orders meanwhile, ``abort`` or ``force_complete``,
``after_s`` after QEMU began to send.

Only what a cloud around it would do is left out: the database, the message queue, and networks.
"""

import json
import logging
import os
import sys
import threading
import time

import nova.monkey_patch  # first of all, as nova-compute does it

# Nova of 2022 patches when it is imported; that of 2026 is told to, and by default is not.
if hasattr(nova.monkey_patch, "poison_eventlet"):
    nova.monkey_patch.patch(backend="threading")

import libvirt
import nova.conf
from nova import context, objects
from nova.virt.libvirt import driver as libvirt_driver

CONF = nova.conf.CONF


class Migration:
    """In place of the database's row."""

    def __init__(self):
        self.status = "running"
        self.saves = 0

    def save(self):
        """Nowhere."""
        self.saves += 1


class Instance(objects.Instance):
    """One that is not stored."""

    def save(self, *args, **kwargs):
        """Nowhere."""


def instance_of(order):
    """The instance, with what the driver asks of it."""
    flavor = objects.Flavor(
        id=1, name="tiny", memory_mb=order["memory_mb"], vcpus=1, root_gb=0, ephemeral_gb=0,
        swap=0, flavorid="1", extra_specs={},
    )  # fmt: skip
    made = Instance(
        id=1, uuid=order["vm"], host="source", vm_state="active", flavor=flavor, progress=0,
        display_name="instance", project_id="p", user_id="u",
    )  # fmt: skip
    made.migration_context = None
    made.resources = None
    return made


def migrate_data_of(order, migration):
    """What the destination's nova-compute would answer of itself."""
    data = objects.LibvirtLiveMigrateData(
        block_migration=False, is_shared_instance_path=True, is_shared_block_storage=True,
        serial_listen_addr=None, serial_listen_ports=[], supported_perf_events=[], bdms=[],
        target_connect_addr=order["dest"], image_type="default",
        graphics_listen_addr_vnc=None, graphics_listen_addr_spice=None,
    )  # fmt: skip
    # An object of the database's in Nova; here the field takes ours.
    type(data).migration = migration
    return data


def order_meanwhile(driver, instance, order, over):
    """What an operator types into `openstack server migration ...`."""
    domain = driver._host.get_guest(instance)._domain
    while not over.is_set():
        try:
            kind, _, _, _, sent, *_ = domain.jobInfo()
            # libvirt's job begins before: on a busy machine its destination takes seconds to start.
            running = kind == libvirt.VIR_DOMAIN_JOB_UNBOUNDED and sent > 0
        except libvirt.libvirtError:
            running = False
        if running and instance.uuid in driver.active_migrations:
            break
        time.sleep(0.02)
    over.wait(order.get("after_s", 0))
    if over.is_set():
        return
    if order["then"] == "abort":
        driver.live_migration_abort(instance)
    else:
        driver.live_migration_force_complete(instance)


def migrate(driver, order):
    """Carry one order out, and say how it ended."""
    # An older Nova has not all of them.
    options = {n: value for n, value in order.get("options", {}).items() if n in CONF.libvirt}
    for name, value in options.items():
        CONF.set_override(name, value, "libvirt")
    driver._parse_migration_flags()
    instance = instance_of(order)
    migration = Migration()
    ended = []
    over = threading.Event()

    def post(*args, **kwargs):
        ended.append("completed")

    def recover(*args, **kwargs):
        ended.append(kwargs.get("migration_status") or "error")

    if order.get("then"):
        given = (driver, instance, order, over)
        threading.Thread(target=order_meanwhile, args=given, daemon=True).start()
    error = ""
    try:
        driver.live_migration(
            context.get_admin_context(), instance, order["dest"], post, recover, False,
            migrate_data_of(order, migration),
        )  # fmt: skip
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed}"
    over.set()
    for name in options:
        CONF.clear_override(name, "libvirt")
    return {
        "ended": ended[0] if ended else "nothing",
        "error": error,
        "status": migration.status,
        "saves": migration.saves,
    }


def main():
    """Carry orders out until there are no more."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    CONF([], project="nova", default_config_files=[])
    objects.register_all()
    CONF.set_override("connection_uri", sys.argv[1], "libvirt")
    CONF.set_override("virt_type", "kvm", "libvirt")
    driver = libvirt_driver.LibvirtDriver(None)
    driver._host.initialize()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(migrate(driver, json.loads(line))), flush=True)
    os._exit(0)  # its event threads would keep it


if __name__ == "__main__":
    main()
