import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { OutcomeTable } from "../../components/migration/OutcomeTable";

/** What was wanted, and what QEMU was seen to run with. */
export function Outcomes({ outcomes }: { outcomes: readonly Schemas["OutcomeView"][] }) {
  if (outcomes.length === 0) return null;
  return (
    <Card>
      <CardTitle component="h2">Values in QEMU</CardTitle>
      <CardBody>
        <OutcomeTable label="Values in QEMU" outcomes={outcomes} />
      </CardBody>
    </Card>
  );
}
