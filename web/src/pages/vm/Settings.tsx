import { Button, Card, CardBody, CardHeader, CardTitle, Switch } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { verifyVm } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { tunables } from "../../api/queries";
import { StatusLabel } from "../../components/labels/StateLabel";
import { TunableName } from "../../components/labels/TunableName";
import { Async, Failure } from "../../components/layout/Async";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { unbroken } from "../../components/text/format";
import { type SettingRow, settingRows } from "./rows";

const COLUMNS: readonly ColumnOf<SettingRow>[] = [
  { title: "Tunable", cell: (row) => <TunableName name={row.name} /> },
  { title: "Wanted", cell: (row) => row.wanted ?? "unset" },
  {
    title: "Actual",
    cell: (row) => (
      <>
        {unbroken(row.current)}
        {row.atNextStart !== null && <small>, {row.atNextStart} at its next start</small>}
      </>
    ),
  },
  {
    title: "Status",
    cell: (row) =>
      row.outcome && (
        <>
          <StatusLabel status={row.outcome.status} /> {row.outcome.reason}
        </>
      ),
  },
  { title: "Takes effect", cell: (row) => row.when },
  { title: "Route", text: "short", cell: (row) => row.route },
  { title: "Overwritten by", cell: (row) => row.overwriter || "–" },
];

/** Every tunable: what is wanted, what QEMU runs with, and what became of it. */
export function Settings({
  vm,
  assigned,
  readings,
  bootReadings,
}: {
  vm: string;
  assigned: boolean;
  readings: Schemas["VmDetail"]["readings"];
  bootReadings: Schemas["VmDetail"]["boot_readings"];
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
  return (
    <Card>
      <CardHeader
        hasWrap
        actions={{
          actions: (
            <>
              <Switch
                id="all-tunables"
                label="Also unset tunables"
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
        {verified.data && (
          <p>
            Compared to {verified.data.profile} r{verified.data.revision},{" "}
            {verified.data.application === null ? "which is assigned" : "which was applied"}.
          </p>
        )}
        {!assigned && !all && <p>This VM has no application and no assigned profile.</p>}
        <Async query={table}>
          {(rows) => {
            const outcomes = verified.data?.outcomes ?? [];
            const shown = settingRows(rows, outcomes, readings, bootReadings, all);
            return (
              shown.length > 0 && (
                <ListTable
                  label="Settings"
                  columns={COLUMNS}
                  rows={shown}
                  name={(row) => row.name}
                  below="grid-lg"
                />
              )
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}
