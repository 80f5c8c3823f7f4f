import { Button, Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteWebhook, testWebhook } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { webhooks } from "../../api/queries";
import { useDialog } from "../../components/dialogs/asked";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { Labelled } from "../../components/labels/StateLabel";
import { Async, Empty } from "../../components/layout/Async";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { CreateWebhook } from "./CreateWebhook";
import { Deliveries } from "./Deliveries";

type Webhook = Schemas["WebhookView"];

const DIALOGS = ["webhook"] as const;
const COLUMNS: readonly ColumnOf<Webhook>[] = [
  { title: "Name", cell: (each) => each.name },
  { title: "URL", text: "breaks", cell: (each) => each.url },
  { title: "Events", cell: (each) => each.events.join(", ") },
  {
    title: "State",
    text: "short",
    cell: (each) => (
      <Labelled look={each.active ? "success" : undefined}>
        {each.active ? "active" : "resting"}
      </Labelled>
    ),
  },
];

/** Who is told by signed notifications, and what became of them. */
export function Webhooks() {
  const list = useQuery(webhooks);
  const [dialog, open] = useDialog(DIALOGS);
  const [removing, setRemoving] = useState<Webhook | null>(null);
  const [shown, setShown] = useState<Webhook | null>(null);
  const queries = useQueryClient();
  const toasts = useToasts();
  const refresh = () => queries.invalidateQueries({ queryKey: ["webhook"] });
  const test = useMutation({
    mutationFn: (webhook: Webhook) => testWebhook(webhook.id),
    onSuccess: (_queued, webhook) => {
      setShown(webhook);
      return refresh();
    },
    onError: (error, webhook) => toasts.failed(`${webhook.name} was not tested`, error),
  });
  const remove = useMutation({
    mutationFn: (webhook: Webhook) => deleteWebhook(webhook.id),
    onSuccess: (_done, webhook) => {
      toasts.done(`${webhook.name} was deleted`);
      return refresh();
    },
    onError: (error, webhook) => toasts.failed(`${webhook.name} was not deleted`, error),
  });
  const choices = (each: Webhook) =>
    [
      ["Test", () => test.mutate(each)],
      ["Deliveries", () => setShown(each)],
      ["Delete", () => setRemoving(each)],
    ] as const;
  const actions: ColumnOf<Webhook> = {
    title: "Actions",
    actions: true,
    cell: (each) =>
      choices(each).map(([title, act]) => (
        <Button
          key={title}
          variant="link"
          size="sm"
          aria-label={`${title} ${each.name}`}
          onClick={act}
        >
          {title}
        </Button>
      )),
  };
  return (
    <Card>
      <CardHeader
        actions={{
          actions: (
            <Button variant="secondary" onClick={() => open("webhook")}>
              Create webhook
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">Webhooks</CardTitle>
      </CardHeader>
      <CardBody>
        <Async query={list}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No webhooks yet">
                A webhook tells a receiver of yours what ended or went wrong.
              </Empty>
            ) : (
              <ListTable
                label="Webhooks"
                columns={[...COLUMNS, actions]}
                rows={items}
                name={(each) => each.id}
                below="grid-lg"
              />
            )
          }
        </Async>
      </CardBody>
      {dialog === "webhook" && <CreateWebhook made={refresh} close={() => open(null)} />}
      {shown && <Deliveries webhook={shown} close={() => setShown(null)} />}
      {removing && (
        <Confirm
          title={`Delete ${removing.name}?`}
          action="Delete"
          danger
          close={() => setRemoving(null)}
          confirm={() => remove.mutate(removing)}
        >
          Nothing more is sent to {removing.url}, and the records of its deliveries are deleted.
          This cannot be undone.
        </Confirm>
      )}
    </Card>
  );
}
