"""Asks vmtune's service over HTTP: at its URL with a token, or at its unix socket."""

from __future__ import annotations

import json
import re
import time
import uuid
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit

from ansible.module_utils.basic import AnsibleModule, env_fallback
from ansible.module_utils.common.text.converters import to_native
from ansible.module_utils.urls import Request

SOCKET = "/run/vmtune/vmtune.sock"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PAGE = 200
_EVERY_S = 0.5
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class ServiceError(Exception):
    """The service did not answer, or refused.

    :param status: the HTTP status; None where no answer came.
    :param problems: what is wrong, each with field, code, message and remedy.
    """

    def __init__(self, message, status=None, problems=()):
        super().__init__(message)
        self.status = status
        self.problems = list(problems)


class Service:
    """The service at *url*, or at *socket* where there is none."""

    def __init__(self, url=None, socket=SOCKET, token=None, ca_path=None, timeout=120):
        if url:
            parts = urlsplit(url)
            plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
            if not parts.hostname or not (parts.scheme == "https" or plain):
                raise ServiceError(
                    f"url: {url!r} is not the URL of a service; remedy: write https://NAME:PORT, "
                    "or http://127.0.0.1:8470 on the service's own machine"
                )
        self.where = url or socket
        self._base = (url or "http://localhost").rstrip("/") + "/api/v1"
        headers = {"Accept": "application/json"}
        if token and url:
            headers["Authorization"] = f"Bearer {token}"
        self._request = Request(
            headers=headers,
            timeout=timeout,
            ca_path=ca_path,
            unix_socket=None if url else socket,
            use_proxy=bool(url),
            follow_redirects="none",  # the token is for this address alone
            http_agent="ansible-vmtune",
        )

    def get(self, path, **query):
        """The JSON at *path*; what of *query* is None is left out."""
        given = {key: value for key, value in query.items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path)

    def find(self, path):
        """The JSON at *path*; None where there is no such object."""
        try:
            return self.get(path)
        except ServiceError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path, **query):
        """Every item of a list."""
        after = None
        found = []
        while True:
            page = self.get(path, limit=_PAGE, after=after, **query)
            found += page["items"]
            after = page["next"]
            if after is None:
                return found

    def post(self, path, body=None):
        """Create, or order what begins work. Sent again, the same order has no second effect."""
        return self._ask("POST", path, body or {}, {"Idempotency-Key": str(uuid.uuid4())})

    def put(self, path, body, revision=None):
        """Replace; only if *revision* is still the current one."""
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        return self._ask("PUT", path, body, headers)

    def patch(self, path, body):
        """Change parts."""
        return self._ask("PATCH", path, body)

    def delete(self, path):
        """Remove."""
        return self._ask("DELETE", path)

    def until_ended(self, path, within_s):
        """The object at *path* once it has ended, and whether it has within so many seconds."""
        deadline = time.monotonic() + within_s
        while True:
            found = self.get(path)
            if found["ended"] or time.monotonic() > deadline:
                return found, found["ended"]
            time.sleep(_EVERY_S)

    def vm(self, name_or_uuid):
        """The VM of that name or UUID."""
        if _UUID.fullmatch(name_or_uuid):
            return self.get(f"/vms/{name_or_uuid.lower()}")
        found = self.items("/vms", name=name_or_uuid)
        if not found:
            raise ServiceError(
                f"vm: there is no VM named {name_or_uuid!r}; remedy: `vmtune vm list` shows them"
            )
        if len({vm["uuid"] for vm in found}) > 1:
            where = ", ".join(sorted(f"{vm['uuid']} on {vm['host']}" for vm in found))
            raise ServiceError(
                f"vm: {name_or_uuid!r} is the name of several VMs: {where}; remedy: give the UUID"
            )
        return self.get(f"/vms/{found[0]['uuid']}")

    def _ask(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            answer = self._request.open(method, self._base + path, data=data, headers=headers)
            content = answer.read()
        except HTTPError as error:
            raise _refusal(error.code, error.read()) from None
        except Exception as error:  # URLError, OSError, and what ansible makes of TLS
            raise ServiceError(self._silent(method, path, error)) from None
        return json.loads(content) if content else {}

    def _silent(self, method, path, error):
        why = to_native(getattr(error, "reason", None) or error)
        outcome = "" if method == "GET" else ": the outcome is unknown if it was connected"
        return (
            f"no answer from the service at {self.where} to {method} {path} ({why}){outcome}; "
            "remedy: check that it runs, the address and its certificate"
        )


def _refusal(status, content):
    try:
        document = json.loads(content)
    except ValueError:
        document = {}
    problems = document.get("errors") or []
    words = [document.get("detail") or f"HTTP status {status}"]
    for problem in problems:
        said = problem["message"] if problem["message"] != words[0] else ""
        said = ": ".join(part for part in (problem.get("field"), said) if part)
        words += [said] if said else []
        words += [f"remedy: {problem['remedy']}"] if problem.get("remedy") else []
    return ServiceError("; ".join(words), status, problems)


def segment(text):
    """*text* as one segment of a path."""
    return quote(text, safe="")


def arguments(**own):
    """A module's argument_spec: how the service is reached, and the module's own."""
    return dict(
        url=dict(type="str", fallback=(env_fallback, ["VMTUNE_URL"])),
        socket=dict(type="path", default=SOCKET),
        token=dict(type="str", no_log=True, fallback=(env_fallback, ["VMTUNE_TOKEN"])),
        ca_path=dict(type="path"),
        timeout=dict(type="int", default=120),
        **own,
    )


def run(module: AnsibleModule, work):
    """End *module* with what *work* returns, which gets the module and the service."""
    keys = ("url", "socket", "token", "ca_path", "timeout")
    try:
        module.exit_json(**work(module, Service(**{key: module.params[key] for key in keys})))
    except ServiceError as error:
        module.fail_json(msg=str(error), status=error.status, problems=error.problems)


def difference(before, after):
    """What a change looks like, for --diff."""
    return {"before": _lines(before), "after": _lines(after)}


def _lines(document):
    return json.dumps(document, indent=2, sort_keys=True) + "\n" if document else ""


def outcome_texts(outcomes):
    """What of a profile is not as wanted, a line each."""
    fine = ("effective", "pending migration", "pending restart", "reverted")
    return [
        f"{each['tunable']} is {each['status']}: {each['reason']}"
        for each in outcomes
        if each["status"] not in fine
    ]
