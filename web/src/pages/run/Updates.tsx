import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { FactList } from "../../components/layout/Facts";
import { count } from "../../components/text/format";
import { Section } from "../bench/Section";

const COLUMNS = {
  Median: "median_us",
  "90 %": "p90_us",
  "99 %": "p99_us",
  Longest: "most_us",
  Mean: "mean_us",
} as const;

function micros(value: number): string {
  return `${value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 })} µs`;
}

/** What updates of a VM's memory map took, and with which kernel. */
export function Updates({ srcu }: { srcu: Schemas["SrcuRecord"] }) {
  const { cost } = srcu;
  const rows = [
    ["Add a slot", cost.add],
    ["Delete it", cost.delete],
    ["Add, no vCPU runs", cost.idle_add],
    ["Delete, no vCPU runs", cost.idle_delete],
  ] as const;
  const parameters = Object.entries(srcu.srcutree ?? {});
  return (
    <Section title="Updates of the memory map">
      <Table aria-label="Updates of the memory map" variant="compact">
        <Thead>
          <Tr>
            <Th>Update</Th>
            <Th>Timed</Th>
            {Object.keys(COLUMNS).map((column) => (
              <Th key={column}>{column}</Th>
            ))}
          </Tr>
        </Thead>
        <Tbody>
          {rows.map(([title, times]) => (
            <Tr key={title}>
              <Td dataLabel="Update">{title}</Td>
              <Td dataLabel="Timed">{count(times.count)}</Td>
              {Object.entries(COLUMNS).map(([column, name]) => (
                <Td key={column} dataLabel={column}>
                  {micros(times[name])}
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
      <FactList
        spread
        facts={[
          ["vCPUs that spin", count(cost.vcpus)],
          ["Host's kernel", srcu.host_kernel || "\u2013"],
          ["srcutree", parameters.map(([name, value]) => `${name}=${value}`).join(", ") || "none"],
        ]}
      />
    </Section>
  );
}
