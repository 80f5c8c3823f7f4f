import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { profilesFound } from "../api/queries";
import { Moment } from "../components/labels/Moment";
import { Empty } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { PageHead } from "../components/layout/PageHead";
import { type Filter, Filters, useFilters } from "../components/tables/Filters";
import { type ColumnOf, ListTable, PagedList } from "../components/tables/ListTable";

const COLUMNS: readonly ColumnOf<Schemas["ProfileView"]>[] = [
  {
    title: "Name",
    value: (each) => each.name,
    cell: (each) => <Link to={`/profiles/${each.name}`}>{each.name}</Link>,
  },
  {
    title: "Values",
    value: (each) => Object.keys(each.values).length,
    cell: (each) => Object.keys(each.values).length,
  },
  { title: "Revision", value: (each) => each.revision, cell: (each) => each.revision },
  {
    title: "Changed",
    value: (each) => each.revised_at,
    text: "short",
    cell: (each) => <Moment at={each.revised_at} />,
  },
  {
    title: "Description",
    value: (each) => each.description,
    cell: (each) => each.description || "–",
  },
];

const FILTERS: readonly Filter<"search">[] = [
  { name: "search", label: "Search by name or description", empty: "Name or description" },
];

export default function Profiles() {
  const [chosen, choose] = useFilters(FILTERS);
  const list = useInfiniteQuery(profilesFound(chosen.search ?? ""));
  const create = <ButtonLink to="/profiles/new">Create profile</ButtonLink>;
  return (
    <>
      <PageHead title="Profiles" actions={create} />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          whole
          empty={
            chosen.search ? (
              <Empty title="No profile matches" />
            ) : (
              <Empty title="No profiles yet" action={create}>
                A profile is a named set of tunable values. Unset tunables keep QEMU's values.
              </Empty>
            )
          }
        >
          {(rows) => (
            <ListTable
              label="Profiles"
              columns={COLUMNS}
              rows={rows}
              name={(each) => each.name}
              to={(each) => `/profiles/${encodeURIComponent(each.name)}`}
              chosen
            />
          )}
        </PagedList>
      </PageSection>
    </>
  );
}
