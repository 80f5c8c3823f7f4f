import { Button, Card, CardBody, CardTitle, GridItem } from "@patternfly/react-core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link } from "react-router";
import { revertApplication } from "../../api/actions";
import { applications, migrations } from "../../api/queries";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { ApplicationLabel } from "../../components/labels/StateLabel";
import { Empty } from "../../components/layout/Async";
import { MigrationTable } from "../../components/migration/MigrationTable";
import { ListTable, PagedList } from "../../components/tables/ListTable";

/** What was applied to this VM, and how it migrated. */
export function History({ vm }: { vm: string }) {
  return (
    <>
      <GridItem>
        <Applications vm={vm} />
      </GridItem>
      <GridItem>
        <Migrations vm={vm} />
      </GridItem>
    </>
  );
}

function Applications({ vm }: { vm: string }) {
  const list = useInfiniteQuery(applications({ vm }));
  const toasts = useToasts();
  const revert = useMutation({
    mutationFn: revertApplication,
    onSuccess: (done) =>
      done.state === "reverted"
        ? toasts.done(`${done.profile} was reverted`)
        : toasts.failed(
            "Reverting failed",
            new Error(done.problems[0]?.message ?? `it is ${done.state}`),
          ),
    onError: (error) => toasts.failed("Reverting failed", error),
  });
  return (
    <Card>
      <CardTitle component="h2">Applications</CardTitle>
      <CardBody>
        <PagedList list={list} empty={<Empty title="No applications yet" />}>
          {(rows) => {
            // Only the newest that stands can be reverted.
            const standing = rows.find((each) => each.state === "applied")?.id;
            return (
              <ListTable
                label="Applications"
                rows={rows}
                name={(each) => each.id}
                columns={[
                  {
                    title: "When",
                    text: "short",
                    cell: (each) => <Moment at={each.created_at} />,
                  },
                  {
                    title: "Profile",
                    cell: (each) => (
                      <Link to={`/profiles/${each.profile}`}>
                        {each.profile} r{each.revision}
                      </Link>
                    ),
                  },
                  {
                    title: "State",
                    cell: (each) => (
                      <>
                        <ApplicationLabel state={each.state} />{" "}
                        {each.problems.map((problem) => problem.message).join("; ")}
                      </>
                    ),
                  },
                  {
                    title: "Actions",
                    actions: true,
                    cell: (each) =>
                      each.id === standing && (
                        <Button
                          variant="link"
                          size="sm"
                          isLoading={revert.isPending && revert.variables === each.id}
                          onClick={() => revert.mutate(each.id)}
                        >
                          Revert
                        </Button>
                      ),
                  },
                ]}
              />
            );
          }}
        </PagedList>
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
        <PagedList list={list} empty={<Empty title="No migrations yet" />}>
          {(rows) => <MigrationTable migrations={rows} shown="of one VM" />}
        </PagedList>
      </CardBody>
    </Card>
  );
}
