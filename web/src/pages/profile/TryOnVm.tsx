import {
  Card,
  CardBody,
  CardTitle,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { type UseQueryResult, useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { hosts } from "../../api/queries";
import type { VmRow } from "../../api/tuning";
import { VmChoice } from "../../components/forms/VmChoice";
import { Async } from "../../components/layout/Async";
import { rowsOf } from "../../components/tables/ListTable";
import { PlanTable } from "../vm/PlanTable";

/** A VM, and where it would migrate to: empty for an application where it is. */
export interface Trial {
  vm: VmRow | null;
  destination: string;
}

/**
 * What a profile would change for one VM: its plan, which changes nothing.
 *
 * @param what the profile in words.
 * @param children stand below.
 */
export function TryOnVm({
  what,
  trial,
  choose,
  plan,
  children,
}: {
  what: string;
  trial: Trial;
  choose: (trial: Trial) => void;
  plan: UseQueryResult<Schemas["PlanView"]>;
  children?: ReactNode;
}) {
  const list = useInfiniteQuery(hosts);
  const others = (list.data ? rowsOf(list.data) : []).filter(
    (each) => each.name !== trial.vm?.host,
  );
  return (
    <Card component="section" aria-label="What it changes for a VM">
      <CardTitle component="h2">What it changes for a VM</CardTitle>
      <CardBody>
        <Stack hasGutter>
          <StackItem>
            <Grid hasGutter>
              <GridItem md={6}>
                <VmChoice
                  id="trial-vm"
                  label="VM"
                  chosen={trial.vm}
                  choose={(vm) => choose({ vm, destination: "" })}
                />
              </GridItem>
              <GridItem md={6}>
                <FormGroup label="When it migrates to" fieldId="trial-destination">
                  <FormSelect
                    id="trial-destination"
                    value={trial.destination}
                    isDisabled={trial.vm === null}
                    onChange={(_event, destination) => choose({ ...trial, destination })}
                  >
                    <FormSelectOption value="" label="No migration: apply on its current host" />
                    {others.map((each) => (
                      <FormSelectOption key={each.name} value={each.name} label={each.name} />
                    ))}
                  </FormSelect>
                </FormGroup>
              </GridItem>
            </Grid>
          </StackItem>
          {trial.vm && (
            <StackItem>
              <Async query={plan}>{(data) => <PlanTable plan={data} what={what} />}</Async>
            </StackItem>
          )}
          {children && <StackItem>{children}</StackItem>}
        </Stack>
      </CardBody>
    </Card>
  );
}
