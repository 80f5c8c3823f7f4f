import { Button, Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { replayDelivery } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { deliveries } from "../../api/queries";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { Labelled, type Look } from "../../components/labels/StateLabel";
import { Empty } from "../../components/layout/Async";
import { type ColumnOf, ListTable, PagedList } from "../../components/tables/ListTable";

type Delivery = Schemas["DeliveryView"];

const LOOK: Record<Delivery["state"], Look> = {
  pending: "info",
  delivered: "success",
  failed: "danger",
};

const COLUMNS: readonly ColumnOf<Delivery>[] = [
  { title: "Number", text: "short", cell: (each) => each.number },
  { title: "Event", text: "short", cell: (each) => each.kind },
  { title: "Subject", text: "breaks", cell: (each) => each.subject },
  {
    title: "State",
    text: "short",
    cell: (each) => <Labelled look={LOOK[each.state]}>{each.state}</Labelled>,
  },
  { title: "Attempts", text: "short", cell: (each) => each.attempts },
  { title: "Problem", text: "breaks", cell: (each) => each.problem },
  { title: "Created", text: "short", cell: (each) => <Moment at={each.created_at} /> },
];

/** What was sent to a webhook, newest first; any of it can be sent again. */
export function Deliveries({
  webhook,
  close,
}: {
  webhook: Schemas["WebhookView"];
  close: () => void;
}) {
  const list = useInfiniteQuery(deliveries(webhook.id));
  const queries = useQueryClient();
  const toasts = useToasts();
  const replay = useMutation({
    mutationFn: (delivery: Delivery) => replayDelivery(webhook.id, delivery.number),
    onSuccess: (_queued, delivery) => {
      toasts.done(`Delivery ${delivery.number} is sent again`);
      return queries.invalidateQueries({ queryKey: ["webhook", "deliveries", webhook.id] });
    },
    onError: (error, delivery) =>
      toasts.failed(`Delivery ${delivery.number} is not sent again`, error),
  });
  const actions: ColumnOf<Delivery> = {
    title: "Actions",
    actions: true,
    cell: (each) => (
      <Button
        variant="link"
        size="sm"
        aria-label={`Replay ${each.number}`}
        onClick={() => replay.mutate(each)}
      >
        Replay
      </Button>
    ),
  };
  return (
    <Modal isOpen variant="large" aria-labelledby="deliveries-title" onClose={close}>
      <ModalHeader labelId="deliveries-title" title={`Deliveries to ${webhook.name}`} />
      <ModalBody tabIndex={0}>
        <PagedList
          list={list}
          empty={<Empty title="Nothing was sent yet">Test it to send a notification.</Empty>}
        >
          {(rows) => (
            <ListTable
              label="Deliveries"
              columns={[...COLUMNS, actions]}
              rows={rows}
              name={(each) => each.number}
              below="grid-lg"
            />
          )}
        </PagedList>
      </ModalBody>
      <ModalFooter>
        <Button onClick={close}>Close</Button>
      </ModalFooter>
    </Modal>
  );
}
