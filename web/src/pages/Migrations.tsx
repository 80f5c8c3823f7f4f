import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { migrations } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { MigrationTable } from "../components/MigrationTable";
import { More } from "../components/More";
import { PageHead } from "../components/PageHead";

export default function Migrations() {
  const [search] = useSearchParams();
  const filter = Object.fromEntries(
    ["vm", "host", "profile"].flatMap((key) => {
      const value = search.get(key);
      return value ? [[key, value]] : [];
    }),
  );
  const list = useInfiniteQuery(migrations(filter));
  return (
    <>
      <PageHead title="Migrations" />
      <PageSection>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) return <Empty title="No migrations yet" />;
            return <MigrationTable migrations={items} showVm />;
          }}
        </Async>
        <More list={list} />
      </PageSection>
    </>
  );
}
