import {
  Card,
  CardBody,
  CardTitle,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  List,
  ListItem,
  PageSection,
  Switch,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams, useSearchParams } from "react-router";
import type { Schemas } from "../api/client";
import { profile } from "../api/queries";
import { profileNames } from "../api/tuning";
import { TunableName } from "../components/labels/TunableName";
import { Async } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { type ColumnOf, ListTable, rowsOf } from "../components/tables/ListTable";
import { sideBySide } from "./profile/difference";

type Profile = Schemas["ProfileView"];

/** Two profiles side by side; which ones is in the address. */
export default function ProfileCompare() {
  const { name = "" } = useParams();
  const [search] = useSearchParams();
  const other = search.get("with") ?? "";
  const navigate = useNavigate();
  const left = useQuery(profile(name));
  const right = useQuery({ ...profile(other), enabled: other !== "" });
  const show = (one: string, two: string) =>
    navigate(`/profiles/${one}/compare${two ? `?with=${encodeURIComponent(two)}` : ""}`, {
      replace: true,
    });
  return (
    <>
      <PageHead
        title={other ? `${name} and ${other}` : `Compare ${name}`}
        trail={[
          { to: "/profiles", text: "Profiles" },
          { to: `/profiles/${name}`, text: name },
        ]}
      />
      <PageSection>
        <Grid hasGutter>
          <GridItem md={6}>
            <Choice label="Profile" value={name} choose={(one) => show(one, other)} />
          </GridItem>
          <GridItem md={6}>
            <Choice label="Compared with" value={other} choose={(two) => show(name, two)} />
          </GridItem>
          {other !== "" && (
            <GridItem>
              <Async query={left}>
                {(one) => <Async query={right}>{(two) => <Both left={one} right={two} />}</Async>}
              </Async>
            </GridItem>
          )}
        </Grid>
      </PageSection>
    </>
  );
}

function Choice({
  label,
  value,
  choose,
}: {
  label: string;
  value: string;
  choose: (profile: string) => void;
}) {
  const list = useInfiniteQuery(profileNames);
  const id = `compare-${label.toLowerCase().replaceAll(" ", "-")}`;
  const names = (list.data ? rowsOf(list.data) : []).map((each) => each.name);
  return (
    <FormGroup label={label} fieldId={id}>
      <FormSelect id={id} value={value} onChange={(_event, chosen) => choose(chosen)}>
        {value === "" && <FormSelectOption value="" label="Choose a profile" isPlaceholder />}
        {value !== "" && !names.includes(value) && <FormSelectOption value={value} label={value} />}
        {names.map((each) => (
          <FormSelectOption key={each} value={each} label={each} />
        ))}
      </FormSelect>
    </FormGroup>
  );
}

function Both({ left, right }: { left: Profile; right: Profile }) {
  const [all, setAll] = useState(false);
  const rows = sideBySide(left.texts, right.texts);
  const differing = rows.filter((each) => each.before !== each.after);
  const columns: readonly ColumnOf<(typeof rows)[number]>[] = [
    { title: "Tunable", cell: (row) => <TunableName name={row.tunable} /> },
    {
      title: `${left.name} r${left.revision}`,
      cell: (row) => <Side row={row} text={row.before} />,
    },
    {
      title: `${right.name} r${right.revision} `,
      cell: (row) => <Side row={row} text={row.after} />,
    },
  ];
  return (
    <Grid hasGutter>
      <GridItem>
        <Card>
          <CardTitle component="h2">Values</CardTitle>
          <CardBody>
            <Switch
              id="compare-all"
              label="Show equal values"
              isChecked={all}
              onChange={(_event, on) => setAll(on)}
            />
            {differing.length === 0 && <p>Both have the same values.</p>}
            {(all ? rows : differing).length > 0 && (
              <ListTable
                label="Values side by side"
                columns={columns}
                rows={all ? rows : differing}
                name={(row) => row.tunable}
              />
            )}
          </CardBody>
        </Card>
      </GridItem>
      {[left, right].map((each) => (
        <GridItem key={each.name} md={6}>
          <Card isFullHeight>
            <CardTitle component="h2">Convergence steps of {each.name}</CardTitle>
            <CardBody>
              {each.step_texts.length === 0 ? (
                "None."
              ) : (
                <List component="ol">
                  {each.step_texts.map((text) => (
                    <ListItem key={text}>{text}</ListItem>
                  ))}
                </List>
              )}
            </CardBody>
          </Card>
        </GridItem>
      ))}
    </Grid>
  );
}

function Side({
  row,
  text,
}: {
  row: { before: string | null; after: string | null };
  text: string | null;
}) {
  const shown = text ?? "unset";
  return row.before === row.after ? shown : <strong>{shown}</strong>;
}
