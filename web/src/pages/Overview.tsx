import { Card, CardBody, CardTitle, Grid, GridItem, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { hosts } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { rowsOf } from "../components/ListTable";
import { PageHead } from "../components/PageHead";
import { HostCard } from "./overview/HostCard";
import { LastComparisons } from "./overview/LastComparisons";
import { LiveMigrations } from "./overview/LiveMigrations";
import { VmsCard } from "./overview/VmsCard";

const MAX_HOSTS = 6;

export default function Overview() {
  return (
    <>
      <PageHead title="Overview" />
      <PageSection>
        <Grid hasGutter>
          <GridItem>
            <LiveMigrations />
          </GridItem>
          <GridItem>
            <VmsCard />
          </GridItem>
          <GridItem>
            <Hosts />
          </GridItem>
          <GridItem>
            <LastComparisons />
          </GridItem>
        </Grid>
      </PageSection>
    </>
  );
}

function Hosts() {
  const list = useInfiniteQuery(hosts);
  return (
    <Card>
      <CardTitle component="h2">Hosts</CardTitle>
      <CardBody>
        <Async query={list}>
          {(data) => {
            const items = rowsOf(data);
            if (items.length === 0) {
              return (
                <Empty title="No hosts yet">
                  Add one with <code>vmtune host add NAME qemu:///system</code>
                </Empty>
              );
            }
            return (
              <Grid hasGutter>
                {items.slice(0, MAX_HOSTS).map((each) => (
                  <GridItem key={each.name} md={6} xl={4}>
                    <HostCard name={each.name} />
                  </GridItem>
                ))}
                <GridItem>
                  <Link to="/hosts">All hosts</Link>
                </GridItem>
              </Grid>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}
