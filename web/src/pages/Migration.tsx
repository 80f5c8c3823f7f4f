import {
  Alert,
  Button,
  Card,
  CardBody,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  PageSection,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { abortMigration } from "../api/actions";
import type { Schemas } from "../api/client";
import { migration } from "../api/queries";
import { Async } from "../components/Async";
import { Confirm } from "../components/Confirm";
import { bytes, count, duration } from "../components/format";
import { MigrationProgress } from "../components/MigrationProgress";
import { Moment } from "../components/Moment";
import { PageHead } from "../components/PageHead";
import { Problems } from "../components/Problems";
import { MigrationLabel } from "../components/StateLabel";
import { useToasts } from "../components/toasts";
import { useProgress } from "../components/useProgress";
import { Outcomes } from "./migration/Outcomes";
import { Reaper } from "./migration/Reaper";
import { Samples } from "./migration/Samples";
import { Steps } from "./migration/Steps";

export default function MigrationPage() {
  const { id = "" } = useParams();
  const found = useQuery(migration(id));
  const progress = useProgress(id).get(id);
  const [aborting, setAborting] = useState(false);
  const toasts = useToasts();
  const abort = useMutation({
    mutationFn: () => abortMigration(id),
    onSuccess: () => toasts.done("QEMU was asked to abort"),
    onError: (error) => toasts.failed("It was not aborted", error),
  });
  const record = found.data;
  const inPostcopy = progress?.status.startsWith("postcopy") ?? false;
  return (
    <>
      <PageHead
        title={
          record ? `${record.vm_name}: ${record.source} to ${record.destination}` : "Migration"
        }
        trail={[{ to: "/migrations", text: "Migrations" }]}
        actions={
          record &&
          !record.ended && (
            <Button variant="danger" isDisabled={inPostcopy} onClick={() => setAborting(true)}>
              {inPostcopy ? "Post-copy cannot be aborted" : "Abort"}
            </Button>
          )
        }
      />
      <PageSection>
        <Async query={found}>
          {(data) => (
            <Stack hasGutter>
              {!data.ended && (
                <StackItem>
                  <MigrationProgress title={`${data.vm_name} is migrating`} progress={progress} />
                </StackItem>
              )}
              {data.failure && (
                <StackItem>
                  <Alert
                    isInline
                    variant={data.state === "failed" ? "danger" : "warning"}
                    title={data.failure}
                  />
                </StackItem>
              )}
              <Problems problems={data.problems} />
              <StackItem>
                <Result record={data} />
              </StackItem>
              <StackItem>
                <Outcomes outcomes={data.outcomes} />
              </StackItem>
              {data.reaper && (
                <StackItem>
                  <Reaper id={id} reaper={data.reaper} running={!data.ended} />
                </StackItem>
              )}
              {data.step_texts.length + data.step_records.length > 0 && (
                <StackItem>
                  <Steps texts={data.step_texts} records={data.step_records} />
                </StackItem>
              )}
              <StackItem>
                <Samples id={id} running={!data.ended} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
      {aborting && (
        <Confirm
          title="Abort this migration?"
          action="Abort"
          danger
          close={() => setAborting(false)}
          confirm={() => abort.mutate()}
        >
          The guest stays on the source and keeps running. In post-copy it could not: then the guest
          runs on the destination already, and QEMU refuses.
        </Confirm>
      )}
    </>
  );
}

function Result({ record }: { record: Schemas["MigrationView"] }) {
  const totals = record.totals;
  const facts: [string, React.ReactNode][] = [
    ["State", <MigrationLabel key="state" state={record.state} />],
    [
      "VM",
      <Link key="vm" to={`/vms/${record.vm}`}>
        {record.vm_name}
      </Link>,
    ],
    ["Profile", record.profile ? `${record.profile} r${record.revision}` : "none: untuned"],
    ["Started by", record.trigger],
    ["Created", <Moment key="created" at={record.created_at} />],
    ["Ended", <Moment key="ended" at={record.ended_at} />],
    ...(totals
      ? ([
          ["Total time", duration(totals.total_time_ms)],
          ["Downtime by QEMU", duration(totals.downtime_ms)],
          ["Transferred", bytes(totals.transferred_bytes)],
          ["Iterations", count(totals.iterations)],
          ...(totals.missed_zero_copy
            ? [["Sends that were copied all the same", count(totals.missed_zero_copy)]]
            : []),
        ] as [string, React.ReactNode][])
      : []),
  ];
  return (
    <Card>
      <CardTitle component="h2">Result</CardTitle>
      <CardBody>
        <DescriptionList columnModifier={{ default: "1Col", md: "2Col", xl: "3Col" }} isCompact>
          {facts.map(([term, value]) => (
            <DescriptionListGroup key={term}>
              <DescriptionListTerm>{term}</DescriptionListTerm>
              <DescriptionListDescription>{value}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
      </CardBody>
    </Card>
  );
}
