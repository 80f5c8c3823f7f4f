import { Button, Flex, FlexItem } from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import type { Schemas } from "../../api/client";
import { removeHost, setMaintenance } from "../../api/hosts";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { ButtonLink } from "../../components/layout/ButtonLink";
import { CheckDialog } from "./CheckDialog";
import { HostForm } from "./HostForm";

type Dialog = "check" | "edit" | "remove" | null;

/** What can be done with a host. */
export function HostActions({
  name,
  host,
}: {
  name: string;
  host: Schemas["HostView"] | undefined;
}) {
  const [dialog, setDialog] = useState<Dialog>(null);
  const toasts = useToasts();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const close = () => setDialog(null);
  const inMaintenance = host?.maintenance_since != null;
  const changed = () => queries.invalidateQueries({ queryKey: ["host"] });
  const maintenance = useMutation({
    mutationFn: (on: boolean) => setMaintenance(name, on),
    onSuccess: (_host, on) => {
      toasts.done(on ? `${name} is in maintenance` : `${name} is out of maintenance`);
      return changed();
    },
    onError: (error) => toasts.failed("The maintenance did not change", error),
  });
  const remove = useMutation({
    mutationFn: () => removeHost(name),
    onSuccess: () => {
      toasts.done(`${name} was removed`);
      navigate("/hosts");
    },
    onError: (error) => toasts.failed(`${name} was not removed`, error),
  });
  return (
    <Flex columnGap={{ default: "columnGapSm" }}>
      <FlexItem>
        <ButtonLink to={`/hosts/${encodeURIComponent(name)}/evacuate`}>Evacuate</ButtonLink>
      </FlexItem>
      <FlexItem>
        <Button
          variant="secondary"
          isDisabled={!host}
          isLoading={maintenance.isPending}
          onClick={() => maintenance.mutate(!inMaintenance)}
        >
          {inMaintenance ? "End maintenance" : "Begin maintenance"}
        </Button>
      </FlexItem>
      <FlexItem>
        <Button variant="secondary" onClick={() => setDialog("check")}>
          Check
        </Button>
      </FlexItem>
      <FlexItem>
        <Button variant="secondary" isDisabled={!host} onClick={() => setDialog("edit")}>
          Edit
        </Button>
      </FlexItem>
      <FlexItem>
        <Button variant="secondary" isDanger onClick={() => setDialog("remove")}>
          Remove
        </Button>
      </FlexItem>
      {dialog === "check" && <CheckDialog name={name} close={close} />}
      {dialog === "edit" && host && (
        <HostForm
          host={host}
          close={close}
          done={() => {
            toasts.done(`${name} was changed`);
            close();
            void changed();
          }}
        />
      )}
      {dialog === "remove" && (
        <Confirm
          title={`Remove ${name}?`}
          action="Remove"
          danger
          close={close}
          confirm={() => remove.mutate()}
        >
          vmtune no longer looks after its VMs. The host itself, its VMs and their history stay
          unchanged; add it again at any time.
        </Confirm>
      )}
    </Flex>
  );
}
