import { Button, Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { revokeToken } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { session, tokens } from "../../api/queries";
import { useDialog } from "../../components/dialogs/asked";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { Labelled, type Look } from "../../components/labels/StateLabel";
import { Empty } from "../../components/layout/Async";
import { type ColumnOf, ListTable, PagedList } from "../../components/tables/ListTable";
import { CreateToken } from "./CreateToken";
import { Rights } from "./Rights";

type Token = Schemas["TokenView"];

const DIALOGS = ["token"] as const;
const LOOK: Record<Token["state"], Look> = {
  active: "success",
  expired: "warning",
  revoked: undefined,
};

const COLUMNS: readonly ColumnOf<Token>[] = [
  { title: "Name", value: (each) => each.name, cell: (each) => each.name },
  {
    title: "State",
    text: "short",
    value: (each) => each.state,
    cell: (each) => <Labelled look={LOOK[each.state]}>{each.state}</Labelled>,
  },
  { title: "Permissions", cell: (each) => <Rights rights={each.rights} /> },
  {
    title: "Created by",
    value: (each) => each.created_by.name,
    cell: (each) => each.created_by.name,
  },
  {
    title: "Expires",
    text: "short",
    value: (each) => each.expires_at,
    cell: (each) => (each.expires_at ? <Moment at={each.expires_at} /> : "never"),
  },
  {
    title: "Last used",
    text: "short",
    value: (each) => each.used_at,
    cell: (each) => (each.used_at ? <Moment at={each.used_at} /> : "never"),
  },
];

/** Tokens with what each may do; a new one's secret is shown once. */
export function Tokens() {
  const list = useInfiniteQuery(tokens);
  const [dialog, open] = useDialog(DIALOGS);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const own = useQuery(session).data?.who;
  const isOwn = own?.kind === "token" && own.id === revoking?.id;
  const queries = useQueryClient();
  const toasts = useToasts();
  const refresh = () => queries.invalidateQueries({ queryKey: ["token"] });
  const revoke = useMutation({
    mutationFn: (token: Token) => revokeToken(token.id),
    onSuccess: (_done, token) => {
      toasts.done(`${token.name} was revoked`);
      return refresh();
    },
    onError: (error, token) => toasts.failed(`${token.name} was not revoked`, error),
  });
  const actions: ColumnOf<Token> = {
    title: "Actions",
    actions: true,
    cell: (each) =>
      each.state === "active" && (
        <Button
          variant="link"
          size="sm"
          aria-label={`Revoke ${each.name}`}
          onClick={() => setRevoking(each)}
        >
          Revoke
        </Button>
      ),
  };
  return (
    <Card>
      <CardHeader
        actions={{
          actions: (
            <Button variant="secondary" onClick={() => open("token")}>
              Create token
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">Tokens</CardTitle>
      </CardHeader>
      <CardBody>
        <PagedList
          list={list}
          whole
          empty={
            <Empty title="No tokens yet">
              Programs and remote users authenticate with a token.
            </Empty>
          }
        >
          {(rows) => (
            <ListTable
              label="Tokens"
              columns={[...COLUMNS, actions]}
              rows={rows}
              name={(each) => each.id}
              below="grid-lg"
            />
          )}
        </PagedList>
      </CardBody>
      {dialog === "token" && (
        <CreateToken
          scopes={list.data?.pages[0]?.scopes ?? {}}
          made={refresh}
          close={() => open(null)}
        />
      )}
      {revoking && (
        <Confirm
          title={isOwn ? `Revoke your own token ${revoking.name}?` : `Revoke ${revoking.name}?`}
          action="Revoke"
          danger
          close={() => setRevoking(null)}
          confirm={() => revoke.mutate(revoking)}
        >
          {isOwn && "You are signed in with this token: you will be signed out at once. "}
          It becomes invalid, with all tokens created with it. Browsers that signed in with it are
          signed out. This cannot be undone.
        </Confirm>
      )}
    </Card>
  );
}
