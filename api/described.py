"""What the OpenAPI document says besides routes and schemas: how to sign in, where the service is,
what each group of routes is for, and what parameters and fields with a usual name mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vmtune.api.auth.security import OPEN

Document = dict[str, Any]  # any: OpenAPI

_INFO = """Tuning profiles for virtual machines on libvirt and QEMU: planned, applied before and \
during live migration, read back, and measured.

Long work answers 202 with a record: read the record until `ended`, or follow `GET /events`. \
Errors are problem documents (RFC 9457) with `code`, `detail` and a remedy.

```
curl --unix-socket /run/vmtune/vmtune.sock http://localhost/api/v1/vms
curl -H "Authorization: Bearer $TOKEN" https://vmtune.example/api/v1/vms
```
"""
_SERVERS = ({"url": "/", "description": "The service that this document is from."},)
_SCHEMES: Document = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `vmtune token create`. Over the unix socket none is needed.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "vmtune_session",
        "description": "A browser's session, of `POST /api/v1/session`; needs `csrf` as well.",
    },
    "csrf": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Vmtune-CSRF",
        "description": "The word `csrf` of the session.",
    },
}
_SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"session": [], "csrf": []}]
TAGS: Mapping[str, str] = {
    "applications": "What was applied to VMs, and verifying and reverting it.",
    "assignments": "Which profile a VM gets: its own, by label, by host, or the default.",
    "audit": "Who did what.",
    "campaigns": "Randomised comparisons of profiles.",
    "comparisons": "Effects, intervals and verdicts, and metrics over time.",
    "drift": "VMs that no longer run with what was applied.",
    "evacuations": "Emptying a host, and maintenance.",
    "events": "What happens, as a stream that can be resumed.",
    "histories": "A metric over time.",
    "health": "Whether the service works.",
    "hooks": "What libvirt's hook asks when a VM arrives.",
    "hosts": "The hosts, their checks and their state.",
    "migrations": "Live migrations: start, follow, steer, abort.",
    "overview": "What needs attention, and how the hosts are.",
    "profiles": "Named, versioned sets of settings.",
    "reference": "Published measurements.",
    "runs": "Benchmark runs and their series.",
    "scenarios": "What benchmark runs can do.",
    "studies": "The search for better settings, and the proof of them.",
    "services": "The services that share a database.",
    "session": "A browser's session.",
    "tokens": "Tokens for programs and people.",
    "tunables": "The settings that profiles may have.",
    "webhooks": "Receivers that are told of ends, drift and findings.",
    "vms": "VMs, their plans, labels and forecasts.",
}
PARAMETERS: Mapping[str, str] = {
    "action": "Only this action, such as `profile.create`.",
    "actor": "Only what this user or token did.",
    "application": "Id of the application.",
    "arm": "Only runs of this arm.",
    "browser": "Id of the browser's session.",
    "campaign": "Id or name of the campaign.",
    "change": "Id of the change.",
    "code": "The finding's code.",
    "evacuation": "Id of the evacuation.",
    "family": "Only scenarios of this family.",
    "fingerprint": "Only runs of this environment.",
    "form": "How it is written.",
    "host": "Name of the host.",
    "id": "Id of the item.",
    "If-Match": "The ETag of the version that is changed.",
    "limit": "Items of a page at most.",
    "metric": "Name of the metric.",
    "migration": "Id of the migration.",
    "name": "Its name.",
    "number": "Number of the revision.",
    "outcome": "Only entries with this outcome.",
    "profile": "Name of the profile.",
    "route": "Only tunables of this route.",
    "run": "Id of the run.",
    "scenario": "Name of the scenario.",
    "side": "Only tunables of this side.",
    "since": "Only what is not older than this.",
    "sort": "The field to sort by; `-` before it: descending.",
    "state": "Only those in one of these states.",
    "study": "Id or name of the study.",
    "token": "Id of the token.",
    "tuning_state": "Only VMs in one of these states of tuning.",
    "until": "Only what is older than this.",
    "variant": "The scenario's variant.",
    "vm": "UUID of the VM.",
    "webhook": "Id of the webhook.",
}
"""By name, where the route says nothing more precise."""
FIELDS: Mapping[str, str] = {
    "arms": "The arms that are compared.",
    "at": "When.",
    "at_ms": "Milliseconds since the record's start.",
    "blocks": "How many blocks.",
    "created_at": "When it was created.",
    "ended": "Whether it has ended.",
    "ended_at": "When it ended; null while it has not.",
    "expires_at": "When it ends; null: never.",
    "fingerprint": "Of the environment: the same for environments that are the same.",
    "high": "The interval's upper end; null where it has none.",
    "host": "Name of the host.",
    "id": "Its id.",
    "items": "The items of this page.",
    "labels": "Its labels, by key.",
    "low": "The interval's lower end; null where it has none.",
    "message": "What is wrong, in a sentence.",
    "metric": "Name of the metric.",
    "name": "Its name.",
    "note": "A note by people.",
    "notes": "What else to know, in sentences.",
    "number": "Its number.",
    "outcomes": "Each tunable: wanted, seen, and what came of it.",
    "profile": "Name of the profile; null without one.",
    "qemu_version": "QEMU's version.",
    "reason": "Why, in a sentence.",
    "revision": "Number of the profile's revision.",
    "run": "Id of the run.",
    "runs": "The runs.",
    "scenario": "Name of the scenario.",
    "seed": "The seed of the runs' order.",
    "since": "Since when.",
    "started_at": "When it started; null while it has not.",
    "step_texts": "The steps as people read them.",
    "steps": "Convergence steps.",
    "text": "The same as people read it.",
    "texts": "The values as people read them, by name.",
    "title": "As people read it.",
    "tunable": "Name of the tunable.",
    "unit": "The unit of its values.",
    "uuid": "UUID of the VM.",
    "value": "The value, in the unit's base.",
    "values": "Values of tunables, by name, in the units' bases.",
    "version": "The version.",
    "vm": "UUID of the VM.",
}
"""By name, where the schema says nothing more precise."""


def described(document: Document) -> Document:
    """*document* with all of that."""
    document["info"]["description"] = _INFO
    document["servers"] = list(_SERVERS)
    document["components"]["securitySchemes"] = _SCHEMES
    document["security"] = _SECURITY
    used: dict[str, None] = {}
    for method, path, operation in _operations(document):
        used |= dict.fromkeys(operation.get("tags", ()))
        if (method.upper(), path) in OPEN:
            operation["security"] = []
        for one in operation.get("parameters", ()):
            if not one.get("description") and one["name"] in PARAMETERS:
                one["description"] = PARAMETERS[one["name"]]
    document["tags"] = [
        {"name": tag, "description": TAGS[tag]} if tag in TAGS else {"name": tag} for tag in used
    ]
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            if not field.get("description") and "$ref" not in field and name in FIELDS:
                field["description"] = FIELDS[name]
    return document


def _operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation
