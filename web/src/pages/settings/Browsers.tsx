import { Button, Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { signBrowserOut } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { browsers } from "../../api/queries";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { Empty } from "../../components/layout/Async";
import { type ColumnOf, ListTable, PagedList } from "../../components/tables/ListTable";
import { Rights } from "./Rights";

type Browser = Schemas["BrowserView"];

const COLUMNS: readonly ColumnOf<Browser>[] = [
  {
    title: "User",
    cell: (each) => `${each.who.kind} ${each.who.name}${each.own ? " (this browser)" : ""}`,
  },
  { title: "Permissions", cell: (each) => <Rights rights={each.rights} /> },
  { title: "From", text: "short", cell: (each) => each.address },
  { title: "Signed in", text: "short", cell: (each) => <Moment at={each.signed_in_at} /> },
  { title: "Last seen", text: "short", cell: (each) => <Moment at={each.seen_at} /> },
];

/** Everybody's browsers that are signed in; any of them can be signed out. */
export function Browsers() {
  const list = useInfiniteQuery(browsers);
  const [ending, setEnding] = useState<Browser | null>(null);
  const queries = useQueryClient();
  const toasts = useToasts();
  const end = useMutation({
    mutationFn: (browser: Browser) => signBrowserOut(browser.id),
    onSuccess: (_done, browser) => {
      toasts.done(`A browser of ${browser.who.name} was signed out`);
      return queries.invalidateQueries({ queryKey: ["browser"] });
    },
    onError: (error, browser) =>
      toasts.failed(`The browser of ${browser.who.name} was not signed out`, error),
  });
  const actions: ColumnOf<Browser> = {
    title: "Actions",
    actions: true,
    cell: (each) =>
      !each.own && (
        <Button
          variant="link"
          size="sm"
          aria-label={`Sign out ${each.who.name}, ${each.id}`}
          onClick={() => setEnding(each)}
        >
          Sign out
        </Button>
      ),
  };
  return (
    <Card>
      <CardHeader>
        <CardTitle component="h2">Signed-in browsers</CardTitle>
      </CardHeader>
      <CardBody>
        <PagedList
          list={list}
          empty={<Empty title="No browser is signed in">Programs use tokens instead.</Empty>}
        >
          {(rows) => (
            <ListTable
              label="Signed-in browsers"
              columns={[...COLUMNS, actions]}
              rows={rows}
              name={(each) => each.id}
              below="grid-lg"
            />
          )}
        </PagedList>
      </CardBody>
      {ending && (
        <Confirm
          title={`Sign out this browser of ${ending.who.name}?`}
          action="Sign out"
          danger
          close={() => setEnding(null)}
          confirm={() => end.mutate(ending)}
        >
          Its cookie becomes invalid. Its user can sign in again: to prevent that, revoke the token
          or block the user at the identity provider.
        </Confirm>
      )}
    </Card>
  );
}
