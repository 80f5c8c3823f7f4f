import { PageSection } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { overview } from "../api/overview";
import { Async } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { Attention } from "./overview/Attention";
import { HostMap } from "./overview/HostMap";
import { LastComparisons } from "./overview/LastComparisons";
import { LiveMigrations } from "./overview/LiveMigrations";
import { Timeline } from "./overview/Timeline";
import { Tunings } from "./overview/Tunings";
import "./overview/overview.css";

/** The fleet at a glance: what needs a person, what runs, where, and what happened. */
export default function Overview() {
  const found = useQuery(overview);
  return (
    <>
      <PageHead
        title="Overview"
        actions={found.data && <Tunings counts={found.data.tuning_counts} />}
      />
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => (
            <div className="vt-overview">
              <Attention found={data.attention} />
              <LiveMigrations moves={data.migrations} />
              <HostMap hosts={data.hosts} />
              <div className="vt-stack">
                <Timeline overview={data} />
                <LastComparisons />
              </div>
            </div>
          )}
        </Async>
      </PageSection>
    </>
  );
}
