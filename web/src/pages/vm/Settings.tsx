import { Button, Card, CardBody, CardHeader, CardTitle, Switch } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { verifyVm } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { tunables } from "../../api/queries";
import { Async, Failure } from "../../components/Async";
import { StatusLabel } from "../../components/StateLabel";
import { TunableName } from "../../components/TunableName";

/** Every tunable: what is wanted, what QEMU runs with, and what became of it. */
export function Settings({
  vm,
  assigned,
  readings,
}: {
  vm: string;
  assigned: boolean;
  readings: Schemas["VmDetail"]["readings"];
}) {
  const [all, setAll] = useState(false);
  const table = useQuery(tunables);
  // Keyed by what changes it: an application that ends, or another assignment.
  const verified = useQuery({
    queryKey: ["application", "verification", vm, assigned],
    queryFn: () => verifyVm(vm),
    enabled: assigned,
    retry: false,
  });
  const outcomes = new Map(verified.data?.outcomes.map((each) => [each.tunable, each]));
  return (
    <Card>
      <CardHeader
        actions={{
          actions: (
            <>
              <Switch
                id="all-tunables"
                label="Also what no profile sets"
                isChecked={all}
                onChange={(_event, on) => setAll(on)}
              />
              <Button
                variant="secondary"
                isLoading={verified.isFetching}
                isDisabled={!assigned}
                onClick={() => void verified.refetch()}
              >
                Verify
              </Button>
            </>
          ),
        }}
      >
        <CardTitle component="h2">Settings</CardTitle>
      </CardHeader>
      <CardBody>
        {verified.error && <Failure error={verified.error} inline />}
        <Async query={table}>
          {(rows) => (
            <Table aria-label="Settings" variant="compact">
              <Thead>
                <Tr>
                  <Th>Tunable</Th>
                  <Th>Wanted</Th>
                  <Th>QEMU has</Th>
                  <Th>Status</Th>
                  <Th>Route</Th>
                </Tr>
              </Thead>
              <Tbody>
                {rows
                  .filter((row) => all || outcomes.has(row.name))
                  .map((row) => {
                    const outcome = outcomes.get(row.name);
                    const reading = readings[row.name];
                    return (
                      <Tr key={row.name}>
                        <Td dataLabel="Tunable">
                          <TunableName name={row.name} />
                        </Td>
                        <Td dataLabel="Wanted">{outcome?.wanted?.text ?? "unset"}</Td>
                        <Td dataLabel="QEMU has">
                          {reading?.text ?? "not read"}
                          {reading?.why_unknown && <small> ({reading.why_unknown})</small>}
                        </Td>
                        <Td dataLabel="Status">
                          {outcome && <StatusLabel status={outcome.status} />} {outcome?.reason}
                        </Td>
                        <Td dataLabel="Route">{row.route}</Td>
                      </Tr>
                    );
                  })}
              </Tbody>
            </Table>
          )}
        </Async>
        {!assigned && !all && <p>No profile is assigned to this VM.</p>}
      </CardBody>
    </Card>
  );
}
