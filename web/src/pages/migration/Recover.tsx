import { Button, Form, FormGroup, FormHelperText, TextInput } from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { recoverMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { Alert } from "../../components/layout/Alert";

/** What an interrupted post-copy means, and the way out. */
export function Recover({ record }: { record: Schemas["MigrationView"] }) {
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
  return (
    <>
      <Alert
        isInline
        variant="danger"
        title="Post-copy is paused: do not shut down either host"
        actionLinks={
          <Button
            variant="primary"
            isLoading={recover.isPending}
            isDisabled={recover.isPending}
            onClick={() => setAsking(true)}
          >
            {recover.isPending ? "Recovering" : "Recover"}
          </Button>
        }
      >
        {told ?? `the guest runs on ${there}, and part of its memory is still on ${record.source}`}.
        Restore the path between the two hosts, then recover the migration.
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
