/** What the dialogs that show a plan before anything is done have in common. */
import {
  Button,
  Form,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { planVm } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { Async, Failure } from "../../components/layout/Async";
import { PlanTable } from "./PlanTable";

export type Plan = Schemas["PlanView"];

/** The plan for *what*; asked anew when that changes. Nothing is asked without *enabled*. */
export function usePlan(
  vm: string,
  what: {
    profile?: string;
    revision?: number;
    destination?: string;
    values?: Schemas["PlanCreate"]["values"];
  },
  enabled = true,
): UseQueryResult<Plan> {
  return useQuery({
    queryKey: ["vm", "plan", vm, what],
    queryFn: () => planVm(vm, what),
    enabled,
    retry: false,
  });
}

/**
 * @param fields what is to be chosen first.
 * @param plan null before there is enough for one.
 * @param byIntent whether an intent chooses settings that the plan does not know.
 * @param ready whether *act* may be called.
 * @param children stand below the plan.
 */
export function PlanDialog({
  title,
  action,
  fields,
  plan,
  byIntent = false,
  ready,
  act,
  acting,
  error,
  close,
  children,
}: {
  title: string;
  action: string;
  fields: ReactNode;
  plan: UseQueryResult<Plan> | null;
  byIntent?: boolean;
  ready: boolean;
  act: () => void;
  acting: boolean;
  error: Error | null;
  close: () => void;
  children?: ReactNode;
}) {
  const id = useId();
  return (
    <Modal isOpen variant="large" aria-labelledby={id} onClose={close}>
      <ModalHeader title={title} labelId={id} />
      <ModalBody tabIndex={0}>
        <Stack hasGutter>
          <StackItem>
            <Form onSubmit={(event) => event.preventDefault()}>{fields}</Form>
          </StackItem>
          {plan && (
            <StackItem>
              <Async query={plan}>{(data) => <PlanTable plan={data} byIntent={byIntent} />}</Async>
            </StackItem>
          )}
          {children && <StackItem>{children}</StackItem>}
          {error && (
            <StackItem>
              <Failure error={error} inline />
            </StackItem>
          )}
        </Stack>
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={!ready || plan?.isFetching === true} isLoading={acting} onClick={act}>
          {action}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}
