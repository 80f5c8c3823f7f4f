import { Button, Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { revertApplication } from "../../api/actions";
import { applications, migrations } from "../../api/queries";
import { Async, Empty } from "../../components/Async";
import { MigrationTable } from "../../components/MigrationTable";
import { Moment } from "../../components/Moment";
import { More } from "../../components/More";
import { ApplicationLabel } from "../../components/StateLabel";
import { useToasts } from "../../components/toasts";

/** What was applied to this VM, and how it migrated. */
export function History({ vm }: { vm: string }) {
  return (
    <>
      <Applications vm={vm} />
      <Migrations vm={vm} />
    </>
  );
}

function Applications({ vm }: { vm: string }) {
  const list = useInfiniteQuery(applications({ vm }));
  const toasts = useToasts();
  const revert = useMutation({
    mutationFn: revertApplication,
    onSuccess: (done) => toasts.done(`${done.profile} was reverted`),
    onError: (error) => toasts.failed("It was not reverted", error),
  });
  return (
    <Card>
      <CardTitle component="h2">Applications</CardTitle>
      <CardBody>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) return <Empty title="Nothing has been applied yet" />;
            return (
              <Table aria-label="Applications" variant="compact">
                <Thead>
                  <Tr>
                    <Th>When</Th>
                    <Th>Profile</Th>
                    <Th>State</Th>
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                <Tbody>
                  {items.map((each) => (
                    <Tr key={each.id}>
                      <Td dataLabel="When">
                        <Moment at={each.created_at} />
                      </Td>
                      <Td dataLabel="Profile">
                        {each.profile} r{each.revision}
                      </Td>
                      <Td dataLabel="State">
                        <ApplicationLabel state={each.state} />
                      </Td>
                      <Td isActionCell>
                        {each.state === "applied" && (
                          <Button
                            variant="link"
                            isInline
                            isLoading={revert.isPending && revert.variables === each.id}
                            onClick={() => revert.mutate(each.id)}
                          >
                            Revert
                          </Button>
                        )}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            );
          }}
        </Async>
        <More list={list} />
      </CardBody>
    </Card>
  );
}

function Migrations({ vm }: { vm: string }) {
  const list = useInfiniteQuery(migrations({ vm }));
  return (
    <Card>
      <CardTitle component="h2">Migrations</CardTitle>
      <CardBody>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) return <Empty title="It has not been migrated yet" />;
            return <MigrationTable migrations={items} />;
          }}
        </Async>
        <More list={list} />
      </CardBody>
    </Card>
  );
}
