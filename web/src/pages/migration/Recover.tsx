import { Button, Form, FormGroup, FormHelperText, TextInput } from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { recoverMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { Alert } from "../../components/layout/Alert";
import { bytes, sentence } from "../../components/text/format";

type Record = Schemas["MigrationView"];
type Sample = Schemas["SampleView"];

/** What an interrupted post-copy means, and the way out. */
export function Recover({ record, latest }: { record: Record; latest?: Sample | undefined }) {
  const [asking, setAsking] = useState(false);
  const [address, setAddress] = useState("");
  const toasts = useToasts();
  const recover = useMutation({
    mutationFn: () => recoverMigration(record.id, address.trim()),
    onSuccess: () => toasts.done("Post-copy goes on"),
    onError: (error) => toasts.failed("Post-copy stays paused", error),
  });
  const there = record.destination || "its destination";
  const told = record.problems.find((each) => each.code === "postcopy_paused")?.message;
  const refused = record.problems.find((each) => each.code === "recovery_not_offered");
  return (
    <>
      <Alert
        isInline
        variant="danger"
        title="Post-copy is paused: do not shut down either host"
        actionLinks={
          refused === undefined && (
            <Button
              variant="primary"
              isLoading={recover.isPending}
              isDisabled={recover.isPending}
              onClick={() => setAsking(true)}
            >
              {recover.isPending ? "Recovering" : "Recover"}
            </Button>
          )
        }
      >
        <p>
          {sentence(
            told ??
              `the guest runs on ${there}, and part of its memory is still on ${record.source}`,
          )}
          .
        </p>
        <Since record={record} latest={latest} />
        {refused === undefined ? (
          <p>Restore the path between the two hosts, then recover the migration.</p>
        ) : (
          <p>
            {sentence(refused.message)}. {sentence(refused.remedy)}.
          </p>
        )}
      </Alert>
      {asking && (
        <Confirm
          title="Recover this migration?"
          action="Recover"
          close={() => setAsking(false)}
          confirm={() => recover.mutate()}
        >
          <Form onSubmit={(event) => event.preventDefault()}>
            <p>
              A new connection is made between the two hosts. If that fails, nothing changes, and it
              can be tried again.
            </p>
            <FormGroup label={`Address of ${there}`} fieldId="recover-address">
              <TextInput
                id="recover-address"
                value={address}
                onChange={(_, value) => setAddress(value)}
              />
              <FormHelperText>
                Leave empty for the usual address. A new address also closes a connection that QEMU
                still holds.
              </FormHelperText>
            </FormGroup>
          </Form>
        </Confirm>
      )}
    </>
  );
}

/** Since when it is paused, and how much memory had not arrived. While it stands there is one sample,
 * of when that was first seen; through libvirt there is none, and the last one is of before. */
function Since({ record, latest }: { record: Record; latest: Sample | undefined }) {
  if (latest === undefined || record.started_at === null) return null;
  const at = new Date(Date.parse(record.started_at) + latest.at_ms).toISOString();
  const stands = latest.status === "postcopy-paused";
  return (
    <div>
      {stands ? "Paused since" : "Last sample:"} <Moment at={at} />; {bytes(latest.remaining_bytes)}{" "}
      of {bytes(latest.total_bytes)} {stands ? "are" : "were"} still on {record.source}.
    </div>
  );
}
