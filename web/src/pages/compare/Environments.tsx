import { Button } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Alert } from "../../components/layout/Alert";
import { Td } from "../../components/tables/Td";
import { Section } from "../bench/Section";
import type { Report } from "./pairs";

/** In what the places differ where the runs ran: before any figure, for it may explain them all. */
export function Environments({
  report,
  expectIt,
}: {
  report: Report;
  expectIt: (field: string) => void;
}) {
  const { environments, differences } = report;
  return (
    <Section title="Environment">
      {differences.length === 0 ? (
        <Alert
          isInline
          isPlain
          variant={environments.length === 1 ? "success" : "info"}
          title={
            environments.length === 1
              ? "All runs ran in the same environment"
              : "The environments have no known differences"
          }
        />
      ) : (
        <>
          <Alert
            isInline
            variant={differences.every((each) => each.expected) ? "info" : "warning"}
            title={
              differences.every((each) => each.expected)
                ? "The environments differ as expected"
                : "The environments differ: the results may be due to that"
            }
          />
          <Table aria-label="Differences of the environments" variant="compact">
            <Thead>
              <Tr>
                <Th>Field</Th>
                {environments.map((each, index) => (
                  <Th key={each.fingerprint || index} modifier="breakWord">
                    {ranIn(each)}
                  </Th>
                ))}
                <Th>Expected</Th>
              </Tr>
            </Thead>
            <Tbody>
              {differences.map((each) => (
                <Tr key={each.field}>
                  <Td dataLabel="Field">{each.field}</Td>
                  {environments.map((place, index) => (
                    <Td key={place.fingerprint || index} dataLabel={ranIn(place)}>
                      {told(each.values[index])}
                    </Td>
                  ))}
                  <Td dataLabel="Expected">
                    {each.expected ? (
                      "expected"
                    ) : (
                      <Button
                        variant="link"
                        isInline
                        aria-label={`Expect a difference of ${each.field}`}
                        onClick={() => expectIt(each.field)}
                      >
                        Expect it
                      </Button>
                    )}
                  </Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
        </>
      )}
    </Section>
  );
}

function ranIn(environment: Report["environments"][number]): string {
  return Object.entries(environment.runs)
    .map(([arm, runs]) => `${arm}: ${runs} ${runs === 1 ? "run" : "runs"}`)
    .join(", ");
}

function told(value: unknown): string {
  if (value === null || value === undefined) return "unknown";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
