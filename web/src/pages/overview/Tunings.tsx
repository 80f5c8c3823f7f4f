import { Flex, FlexItem } from "@patternfly/react-core";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Labelled } from "../../components/labels/StateLabel";
import { TUNING, TUNING_STATES } from "../../components/labels/TuningLabel";
import { count } from "../../components/text/format";

/** How many VMs stand how. */
export function Tunings({ counts }: { counts: Schemas["OverviewView"]["tuning_counts"] }) {
  return (
    <Flex component="ul" aria-label="VMs by tuning state" role="list">
      <FlexItem component="li">
        <Link to="/vms">VMs</Link>
      </FlexItem>
      {TUNING_STATES.map((state) => (
        <FlexItem component="li" key={state}>
          <Link to={`/vms?tuning=${encodeURIComponent(state)}`}>{count(counts[state] ?? 0)}</Link>{" "}
          {/* A state that no VM is in must not catch the eye. */}
          <Labelled look={counts[state] ? TUNING[state].look : undefined}>{state}</Labelled>
        </FlexItem>
      ))}
    </Flex>
  );
}
