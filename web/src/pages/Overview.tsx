import { Card, CardBody, CardTitle, Gallery, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { migrations } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { PageHead } from "../components/PageHead";
import { MigrationLabel } from "../components/StateLabel";

export default function Overview() {
  const list = useInfiniteQuery(migrations());
  return (
    <>
      <PageHead title="Overview" />
      <PageSection>
        <Gallery hasGutter minWidths={{ default: "320px" }}>
          <Card>
            <CardTitle component="h2">Last migrations</CardTitle>
            <CardBody>
              <Async query={list}>
                {(data) =>
                  data.pages[0]?.items.length ? (
                    <ul>
                      {data.pages[0].items.slice(0, 5).map((each) => (
                        <li key={each.id}>
                          <Link to={`/migrations/${each.id}`}>{each.vm_name}</Link>{" "}
                          <MigrationLabel state={each.state} />
                        </li>
                      ))}
                    </ul>
                  ) : (
                    <Empty title="No migrations yet" />
                  )
                }
              </Async>
            </CardBody>
          </Card>
        </Gallery>
      </PageSection>
    </>
  );
}
