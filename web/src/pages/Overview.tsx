import {
  Card,
  CardBody,
  CardTitle,
  Grid,
  GridItem,
  PageSection,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { hosts, migrations } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { MigrationProgress } from "../components/MigrationProgress";
import { MigrationTable } from "../components/MigrationTable";
import { PageHead } from "../components/PageHead";
import { useProgress } from "../components/useProgress";
import { HostCard } from "./overview/HostCard";

const SHOWN = 5;

export default function Overview() {
  return (
    <>
      <PageHead title="Overview" />
      <PageSection>
        <Grid hasGutter>
          <GridItem>
            <Migrations />
          </GridItem>
          <Hosts />
        </Grid>
      </PageSection>
    </>
  );
}

function Migrations() {
  const list = useInfiniteQuery(migrations());
  const progress = useProgress();
  return (
    <Card>
      <CardTitle component="h2">Migrations</CardTitle>
      <CardBody>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) {
              return <Empty title="No migrations yet">Start one on a VM's page.</Empty>;
            }
            const running = items.filter((each) => !each.ended);
            const ended = items.filter((each) => each.ended).slice(0, SHOWN);
            return (
              <Stack hasGutter>
                {running.map((each) => (
                  <StackItem key={each.id}>
                    <Link to={`/migrations/${each.id}`}>
                      {each.source} to {each.destination}
                    </Link>
                    <MigrationProgress title={each.vm_name} progress={progress.get(each.id)} />
                  </StackItem>
                ))}
                <StackItem>
                  <MigrationTable migrations={ended} showVm />
                </StackItem>
                <StackItem>
                  <Link to="/migrations">All migrations</Link>
                </StackItem>
              </Stack>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}

function Hosts() {
  const list = useInfiniteQuery(hosts);
  return (
    <Async query={list}>
      {(data) => (
        <>
          {data.pages
            .flatMap((page) => page.items)
            .map((each) => (
              <GridItem key={each.name} md={6} xl={4}>
                <HostCard name={each.name} />
              </GridItem>
            ))}
        </>
      )}
    </Async>
  );
}
