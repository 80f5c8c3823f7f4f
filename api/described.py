"""What the OpenAPI document says besides routes and schemas: how to sign in, where the service is,
what each group of routes is for, and what parameters and fields mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vmtune.api.auth.security import OPEN
from vmtune.api.docstrings import parted
from vmtune.api.field_words import FIELDS, WORDS

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
    "forecasts": "Forecasts, compared with what happened.",
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
    for name, schema in document["components"]["schemas"].items():
        _describe_fields(name, schema)
    return document


def _describe_fields(name: str, schema: Document) -> None:
    """Give the fields of a schema the words that are for them: of the table for this schema, of its
    class, or of the table for all. A field that is another schema has that one's words, too."""
    said = parted(schema.get("description", ""))
    if said.summary:
        schema["description"] = said.summary
    own = WORDS.get(name, {})
    for field, part in schema.get("properties", {}).items():
        general = "" if "$ref" in part else FIELDS.get(field, "")
        words = own.get(field) or said.parameters.get(field) or general
        if words and not part.get("description"):
            part["description"] = words


def _operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation
