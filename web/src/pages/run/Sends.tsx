import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { bytes, count, duration } from "../../components/text/format";
import { Section } from "../bench/Section";

const GIB = 1 << 30;

type Counts = Schemas["SendCounts"];

/** How each column is had from what was counted. */
const COLUMNS: Record<string, (of: Counts) => string> = {
  Sends: (of) => count(of.sends),
  Sent: (of) => bytes(of.sent_bytes),
  "sendmsg, CPU": (of) => perGib(of.send_cpu_us, of.sent_bytes),
  "sendmsg, time": (of) => perGib(of.send_us, of.sent_bytes),
  "Zero-copy": (of) => count(of.zero_copy_sends),
  Copied: (of) => count(of.copied_sends),
  Flushes: (of) => `${count(of.flushes)}, ${duration(of.flush_us / 1000)}`,
};

function perGib(micros: number, sent: number): string {
  if (sent === 0) return "\u2013";
  return `${count(Math.round((micros / 1000) * (GIB / sent)))} ms/GiB`;
}

/** What sending cost the source, iteration by iteration, as a patched QEMU counts it. */
export function Sends({ sends }: { sends: Schemas["SendRecord"] }) {
  const rows: [string, Counts][] = sends.iterations.map((each) => [
    count(each.iteration),
    each.counts,
  ]);
  rows.push(["All", sends.total]);
  return (
    <Section title="Sends">
      <Table aria-label="Sends by iteration" variant="compact">
        <Thead>
          <Tr>
            <Th>Iteration</Th>
            {Object.keys(COLUMNS).map((column) => (
              <Th key={column}>{column}</Th>
            ))}
          </Tr>
        </Thead>
        <Tbody>
          {rows.map(([iteration, counts]) => (
            <Tr key={iteration}>
              <Td dataLabel="Iteration">{iteration}</Td>
              {Object.entries(COLUMNS).map(([column, cell]) => (
                <Td key={column} dataLabel={column}>
                  {cell(counts)}
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
      <p>
        <Link to="/bench/reference/zero-copy-multifd">Published</Link>: sendmsg took 15 times less
        with zero-copy, by a network card that need not copy. Copied are the zero-copy sends that
        the kernel copied all the same; over loopback and veth these are all.
      </p>
    </Section>
  );
}
