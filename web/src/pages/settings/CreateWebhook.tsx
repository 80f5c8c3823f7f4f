import {
  Alert,
  Button,
  Checkbox,
  ClipboardCopy,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createWebhook } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { Failure } from "../../components/Async";
import { TextField } from "../../components/TextField";

type Event = Exclude<Schemas["WebhookEvent"], "test">;

/** The compiler refuses a list that lacks one. */
const EVENTS: Record<Event, string> = {
  "migration.ended": "A migration completed, failed, was cancelled, or its end is unknown",
  "evacuation.ended": "Likewise an evacuation",
  "campaign.ended": "Likewise a campaign",
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
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const webhook = create.data;
  return (
    // A click beside it must not lose what is shown once.
    <Modal
      isOpen
      variant="medium"
      aria-labelledby="webhook-title"
      onClose={close}
      {...(webhook ? { onEscapePress: () => {} } : {})}
    >
      <ModalHeader
        labelId="webhook-title"
        title={webhook ? `The secret of ${webhook.name}` : "Create a webhook"}
      />
      <ModalBody tabIndex={0}>
        {webhook ? (
          <>
            <Alert isInline variant="warning" title="Copy the secret now: it is not shown again">
              The receiver checks the signature of notifications with it.
            </Alert>
            <ClipboardCopy
              isReadOnly
              isCode
              hoverTip="Copy"
              clickTip="Copied"
              textAriaLabel="Secret"
            >
              {webhook.secret}
            </ClipboardCopy>
          </>
        ) : (
          <Form id="webhook-form" onSubmit={submit}>
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
            {create.error && <Failure error={create.error} inline />}
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        {webhook ? (
          <Button onClick={close}>I have copied it</Button>
        ) : (
          <>
            <Button
              type="submit"
              form="webhook-form"
              isLoading={create.isPending}
              isDisabled={name.trim() === "" || url.trim() === "" || events.length === 0}
            >
              Create
            </Button>
            <Button variant="link" onClick={close}>
              Cancel
            </Button>
          </>
        )}
      </ModalFooter>
    </Modal>
  );
}
