"""Webhooks, by the command against the real application."""

from __future__ import annotations

import json

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune

URL = "https://ops.example/vmtune"


def test_the_life_of_a_webhook(vmtune: Vmtune, real: Api) -> None:
    ran = vmtune("webhook", "create", "ops", URL, "--event", "vm.drifted", "-o", "json")
    assert ran.code == 0, ran.err
    made = json.loads(ran.out)
    assert (made["url"], made["events"]) == (URL, ["vm.drifted"])
    assert made["secret"].startswith("whsec_")
    row = vmtune("webhook", "list", "--wide").out.splitlines()[1]
    for cell in ("ops", URL, "yes", "vm.drifted", made["id"]):
        assert cell in row
    secret = vmtune("webhook", "rotate", "ops", "-o", "name").out.strip()
    assert secret.startswith("whsec_") and secret != made["secret"]
    moved = vmtune("webhook", "change", "ops", "--to", f"{URL}2", "--rest", "-o", "json")
    assert json.loads(moved.out)["url"] == f"{URL}2"
    assert vmtune("webhook", "test", "ops").out == "delivery 1 is queued\n"
    listed = vmtune("webhook", "deliveries", "ops").out.splitlines()
    assert listed[1].split()[:4] == ["1", "test", "ops", "pending"]
    assert vmtune("webhook", "replay", "ops", "1").code == 0
    assert vmtune("webhook", "remove", made["id"]).code == 0
    ran = vmtune("webhook", "test", "ops")
    assert ran.code == 1 and "there is no webhook 'ops'" in ran.err
