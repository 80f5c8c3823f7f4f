import { Label, LabelGroup } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { Labels } from "../../components/labels/Labels";

/** What somebody may do, and where. */
export function Rights({ rights }: { rights: Schemas["RightsView"] }) {
  const everywhere = rights.hosts === null && Object.keys(rights.selector).length === 0;
  return (
    <>
      <LabelGroup aria-label="Scopes" numLabels={12}>
        {rights.scopes.map((scope) => (
          <Label key={scope} isCompact>
            {scope}
          </Label>
        ))}
      </LabelGroup>{" "}
      {everywhere ? (
        "on all hosts and VMs"
      ) : (
        <>
          {rights.hosts !== null && <>on {rights.hosts.join(", ") || "no host"} </>}
          <Labels labels={rights.selector} />
        </>
      )}
    </>
  );
}
