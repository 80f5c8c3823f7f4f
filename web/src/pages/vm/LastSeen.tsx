import { AlertActionLink, GridItem } from "@patternfly/react-core";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Labels } from "../../components/labels/Labels";
import { Moment } from "../../components/labels/Moment";
import { AsOf, TuningLabel } from "../../components/labels/TuningLabel";
import { Alert } from "../../components/layout/Alert";
import { type Fact, Facts } from "../../components/layout/Facts";
import { VmStanding } from "../../components/migration/VmStanding";
import { Said } from "../../components/text/Said";
import { History } from "./History";

type Row = Schemas["VmView"];

/**
 * A VM whose host does not answer: as it was last seen, since when and why no more is known.
 *
 * @param remedy what to do about it; empty where nobody knows.
 */
export function LastSeen({ vm, remedy, again }: { vm: Row; remedy: string; again: () => void }) {
  return (
    <>
      <GridItem>
        <Alert
          isInline
          variant="warning"
          title={`Host ${vm.host} does not answer: this is the VM as it was last seen`}
          actionLinks={
            <>
              <AlertActionLink onClick={again}>Try again</AlertActionLink>
              <Link to={`/hosts/${encodeURIComponent(vm.host)}`}>Check the host</Link>
            </>
          }
        >
          {vm.unreachable && (
            <p>
              Since <Moment at={vm.unreachable.since} />: {vm.unreachable.reason}
            </p>
          )}
          {remedy && (
            <p>
              <Said>{remedy}</Said>
            </p>
          )}
        </Alert>
      </GridItem>
      <GridItem>
        <Facts title="VM" facts={facts(vm)} spread />
      </GridItem>
      <History vm={vm.uuid} />
    </>
  );
}

function facts(vm: Row): Fact[] {
  return [
    ["State", <VmStanding key="state" vm={vm} />],
    ["Tuning", <TuningLabel key="tuning" state={vm.tuning_state} tuning={vm.tuning} />],
    ["As of", <AsOf key="as-of" tuning={vm.tuning} />],
    ["Profile", vm.tuning ? `${vm.tuning.profile} r${vm.tuning.revision}` : "–"],
    [
      "Host",
      <Link key="host" to={`/hosts/${encodeURIComponent(vm.host)}`}>
        {vm.host}
      </Link>,
    ],
    ["Labels", <Labels key="labels" labels={vm.labels} />],
  ];
}
