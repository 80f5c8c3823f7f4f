import { Checkbox, FormGroup } from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { createWebhook } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { TextField } from "../../components/forms/TextField";
import { SecretOnce } from "./SecretOnce";

type Event = Exclude<Schemas["WebhookEvent"], "test">;

/** The compiler refuses a list that lacks one. */
const EVENTS: Record<Event, string> = {
  "migration.ended": "A migration completed, failed, was cancelled, or its end is unknown",
  "evacuation.ended": "Likewise an evacuation",
  "campaign.ended": "Likewise a campaign",
  "study.ended": "Likewise a study",
  "vm.drifted": "A VM no longer runs with the values of its profile",
  "host.findings": "The number of findings of a host changed",
};
const ALL = Object.keys(EVENTS) as Event[];

/** A new webhook, and then its secret, this once. */
export function CreateWebhook({ made, close }: { made: () => unknown; close: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<readonly Event[]>(ALL);
  const create = useMutation({
    mutationFn: () => createWebhook({ name: name.trim(), url: url.trim(), events: [...events] }),
    onSuccess: () => void made(),
  });
  const webhook = create.data;
  return (
    <SecretOnce
      id="webhook"
      title="Create a webhook"
      created={
        webhook
          ? { title: `The secret of ${webhook.name}`, what: "secret", secret: webhook.secret }
          : null
      }
      note="The receiver checks the signature of notifications with it."
      ready={name.trim() !== "" && url.trim() !== "" && events.length > 0}
      create={create}
      close={close}
    >
      <TextField
        id="webhook-name"
        label="Name"
        help="Letters, digits, dots, dashes and underscores."
        required
        value={name}
        change={setName}
      />
      <TextField
        id="webhook-url"
        label="URL"
        help="Where the receiver listens, as in https://ops.example/vmtune."
        required
        value={url}
        change={setUrl}
      />
      <FormGroup role="group" label="Events" fieldId="webhook-events" isStack>
        {ALL.map((each) => (
          <Checkbox
            key={each}
            id={`event-${each}`}
            label={each}
            description={EVENTS[each]}
            isChecked={events.includes(each)}
            onChange={(_event, on) =>
              setEvents(ALL.filter((one) => (one === each ? on : events.includes(one))))
            }
          />
        ))}
      </FormGroup>
    </SecretOnce>
  );
}
