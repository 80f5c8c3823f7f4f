import { Card, CardBody, CardTitle, Label } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { explanation } from "../../api/queries";
import { Async } from "../../components/layout/Async";
import { ListTable } from "../../components/tables/ListTable";
import { sentence } from "../../components/text/format";
import { TARGETS } from "../profile/targets";

/** Which profile a VM gets, which assignment won, and over which others. */
export function Why({ vm }: { vm: string }) {
  const why = useQuery(explanation(vm));
  return (
    <Card isFullHeight>
      <CardTitle component="h2">Profile</CardTitle>
      <CardBody>
        <Async query={why} lines={1}>
          {(explained) => (
            <>
              <p>{sentence(explained.reason)}.</p>
              {explained.candidates.length > 0 && <Candidates explained={explained} />}
            </>
          )}
        </Async>
      </CardBody>
    </Card>
  );
}

function Candidates({ explained }: { explained: Schemas["ExplanationView"] }) {
  return (
    <ListTable
      label="Matching assignments"
      rows={explained.candidates}
      name={(each) => each.id}
      columns={[
        {
          title: "Profile",
          cell: (each) => <Link to={`/profiles/${each.profile}`}>{each.profile}</Link>,
        },
        { title: "For", cell: (each) => TARGETS[each.target].label },
        { title: "Which", cell: (each) => each.key || "–" },
        {
          title: "Chosen",
          text: "short",
          cell: (each) =>
            each.id === explained.winner?.id ? (
              <Label isCompact status="success">
                chosen
              </Label>
            ) : (
              "less specific"
            ),
        },
      ]}
    />
  );
}
