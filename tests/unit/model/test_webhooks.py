"""What webhooks are told, how it is signed, where it is not sent."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from vmtune.errors import InvalidInput
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.model.webhooks import (
    RETRIES_S,
    WebhookEvent,
    check_events,
    check_url,
    new_secret,
    next_attempt,
    payload,
    signature,
    webhook_event,
    why_not_there,
)

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def event(topic: EventTopic, **data: object) -> Event:
    return Event(7, NOW, topic, "x", data)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (event(EventTopic.MIGRATION, state="completed"), WebhookEvent.MIGRATION_ENDED),
        (event(EventTopic.MIGRATION, state="failed"), WebhookEvent.MIGRATION_ENDED),
        (event(EventTopic.MIGRATION, state="active"), None),
        (event(EventTopic.MIGRATION, state="completed", step={}), None),
        (event(EventTopic.EVACUATION, state="completed"), WebhookEvent.EVACUATION_ENDED),
        (event(EventTopic.EVACUATION, state="paused"), None),
        (event(EventTopic.CAMPAIGN, state="cancelled"), WebhookEvent.CAMPAIGN_ENDED),
        (event(EventTopic.STUDY, state="completed"), WebhookEvent.STUDY_ENDED),
        (event(EventTopic.VM, change="tuning", tuning_state="drifted"), WebhookEvent.VM_DRIFTED),
        (event(EventTopic.VM, change="tuning", tuning_state="tuned"), None),
        (event(EventTopic.VM, change="labels"), None),
        (event(EventTopic.HOST, change="findings", findings=2), WebhookEvent.HOST_FINDINGS),
        (event(EventTopic.PROFILE, change="deleted"), None),
    ],
)
def test_ends_drift_and_findings_are_told(given: Event, kind: WebhookEvent | None) -> None:
    assert webhook_event(given) is kind


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of their documentation, worked out by hand."""
    secret = new_secret()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    assert len(key) == 32
    body = payload(WebhookEvent.TEST, NOW, "x", {"ü": 1})
    assert json.loads(body)["data"] == {"ü": 1}
    made = hmac.new(key, f"msg_1.1764028800.{body}".encode(), hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(made).decode()}"
    assert signature([secret], "msg_1", 1764028800, body) == expected
    both = signature([new_secret(), secret], "msg_1", 1764028800, body).split(" ")
    assert len(both) == 2 and both[1] == expected


def test_it_is_tried_again_for_a_day_and_no_longer() -> None:
    waits = [next_attempt(number, NOW) for number in range(1, len(RETRIES_S) + 2)]
    assert waits[-1] is None
    assert waits[:-1] == [NOW + timedelta(seconds=each) for each in RETRIES_S]
    assert 20 * 3600 < sum(RETRIES_S) < 30 * 3600


@pytest.mark.parametrize(
    ("address", "own", "refused"),
    [
        ("127.0.0.1", False, True),
        ("127.9.9.9", False, True),
        ("::1", False, True),
        ("::ffff:127.0.0.1", False, True),
        ("169.254.169.254", False, True),
        ("fe80::1%eth0", False, True),
        ("0.0.0.0", False, True),
        ("224.0.0.1", False, True),
        ("10.0.0.7", True, True),
        ("10.0.0.8", False, False),
        ("192.0.2.1", False, False),
        ("2001:db8::1", False, False),
    ],
)
def test_addresses_of_the_machine_itself_are_refused(
    address: str, own: bool, refused: bool
) -> None:
    assert bool(why_not_there(address, own)) is refused


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "https://", "https://u:p@a/", "https://a/#x", "https://a:0/", "https://a/ b"],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not a URL"):
        check_url(url)


@pytest.mark.parametrize("user", ["u:hunter2", "hunter2", ":hunter2"])
def test_a_refusal_does_not_say_the_password(user: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_url(f"https://{user}@a/?key=hunter2")
    assert "hunter2" not in str(refused.value.problems)


def test_events_are_those_of_the_table() -> None:
    assert len(check_events([])) == 6
    assert check_events(["vm.drifted", "migration.ended"]) == ("migration.ended", "vm.drifted")
    with pytest.raises(InvalidInput, match="is not an event"):
        check_events(["vm.drifted", "test"])
