import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Card,
  CardBody,
  CardTitle,
  List,
  ListItem,
  PageSection,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";
import { deleteProfile } from "../api/actions";
import { profile } from "../api/queries";
import { Confirm } from "../components/dialogs/Confirm";
import { useToasts } from "../components/dialogs/toasts";
import { TunableName } from "../components/labels/TunableName";
import { Async } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { PageHead } from "../components/layout/PageHead";
import { type ColumnOf, ListTable } from "../components/tables/ListTable";
import { Assignments } from "./profile/Assignments";
import { PlanForVm } from "./profile/PlanForVm";
import { Revisions } from "./profile/Revisions";

export default function Profile() {
  const { name = "" } = useParams();
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const toasts = useToasts();
  const remove = useMutation({
    mutationFn: (revision: number) => deleteProfile(name, revision),
    onSuccess: () => {
      toasts.done(`${name} was deleted`, "Records keep its revisions.");
      return navigate("/profiles");
    },
    onError: (error) => toasts.failed(`${name} was not deleted`, error),
  });
  // The event of its deletion may arrive before this page is left.
  const found = useQuery({ ...profile(name), enabled: !remove.isPending && !remove.isSuccess });
  return (
    <>
      <PageHead
        title={name}
        trail={[{ to: "/profiles", text: "Profiles" }]}
        actions={
          <ActionList>
            <ActionListGroup>
              <ActionListItem>
                <ButtonLink to={`/profiles/${name}/edit`}>Edit</ButtonLink>
              </ActionListItem>
              <ActionListItem>
                <ButtonLink
                  variant="secondary"
                  to={`/profiles/new?from=${encodeURIComponent(name)}`}
                >
                  Clone
                </ButtonLink>
              </ActionListItem>
              <ActionListItem>
                <ButtonLink variant="secondary" to={`/profiles/${name}/compare`}>
                  Compare
                </ButtonLink>
              </ActionListItem>
              <ActionListItem>
                <Button variant="secondary" isDanger onClick={() => setDeleting(true)}>
                  Delete
                </Button>
              </ActionListItem>
            </ActionListGroup>
          </ActionList>
        }
      >
        {found.data?.description}
      </PageHead>
      <PageSection>
        <Async query={found}>
          {(data) => (
            <Stack hasGutter>
              <StackItem>
                <Card>
                  <CardTitle component="h2">Values</CardTitle>
                  <CardBody>
                    <Values texts={data.texts} />
                    {data.intent && <p>Intent of its migrations: {data.intent.text}.</p>}
                    {data.step_texts.length > 0 && (
                      <>
                        <p>Convergence steps:</p>
                        <List component="ol">
                          {data.step_texts.map((text) => (
                            <ListItem key={text}>{text}</ListItem>
                          ))}
                        </List>
                      </>
                    )}
                  </CardBody>
                </Card>
              </StackItem>
              <StackItem>
                <PlanForVm profile={name} />
              </StackItem>
              <StackItem>
                <Assignments profile={name} intent={data.intent?.text ?? ""} />
              </StackItem>
              <StackItem>
                <Revisions name={name} current={data.revision} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
      {deleting && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete"
          danger
          close={() => setDeleting(false)}
          confirm={() => remove.mutate(found.data?.revision ?? 0)}
        >
          VMs keep their applied values. Records keep its revisions.
        </Confirm>
      )}
    </>
  );
}

const COLUMNS: readonly ColumnOf<[tunable: string, text: string]>[] = [
  { title: "Tunable", cell: ([tunable]) => <TunableName name={tunable} /> },
  { title: "Value", cell: ([_tunable, text]) => text },
];

function Values({ texts }: { texts: Readonly<Record<string, string>> }) {
  const rows = Object.entries(texts);
  if (rows.length === 0)
    return <p>No values: its VMs migrate with the defaults of QEMU and libvirt.</p>;
  return <ListTable label="Values" columns={COLUMNS} rows={rows} name={([tunable]) => tunable} />;
}
