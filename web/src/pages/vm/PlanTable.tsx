import { ExpandableSection, Label, List, ListItem, Stack, StackItem } from "@patternfly/react-core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { TunableName } from "../../components/labels/TunableName";
import { Alert } from "../../components/layout/Alert";
import { Findings } from "../../components/layout/Findings";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { counted, unbroken } from "../../components/text/format";
import { inWords } from "./rows";

type Item = Schemas["PlanItemView"];

const COLUMNS: readonly ColumnOf<Item>[] = [
  { title: "Tunable", cell: (item) => <TunableName name={item.tunable} /> },
  {
    title: "Current",
    cell: (item) =>
      item.differs ? <del>{unbroken(inWords(item.current))}</del> : inWords(item.current),
  },
  {
    title: "Wanted",
    cell: (item) =>
      item.differs ? (
        <Label isCompact color="blue">
          <ins>{unbroken(item.wanted.text)}</ins>
        </Label>
      ) : (
        item.wanted.text
      ),
  },
  { title: "Takes effect", cell: (item) => item.takes_effect },
  { title: "Route", text: "short", cell: (item) => item.route },
  { title: "Overwritten by", cell: (item) => item.overwriter || "–" },
];

/**
 * A plan as a difference: what would become of what is set, when, and what stands against it.
 *
 * @param what the profile in words, where the plan does not know it.
 * @param byIntent whether an intent chooses settings that the plan does not know.
 */
export function PlanTable({
  plan,
  what,
  byIntent = false,
}: {
  plan: Schemas["PlanView"];
  what?: string;
  byIntent?: boolean;
}) {
  const [open, setOpen] = useState(false);
  const changed = plan.items.filter((item) => item.differs);
  const set = plan.items.filter(isOfMigration);
  const alone = byIntent ? "the intent alone chooses settings" : "no changes";
  const same = plan.items.filter((item) => !item.differs && !isOfMigration(item));
  return (
    <Stack hasGutter>
      {plan.findings.length > 0 && (
        <StackItem>
          <Findings findings={plan.findings} />
        </StackItem>
      )}
      <StackItem>
        {plan.profile === null && what === undefined ? (
          <Alert
            isInline
            variant="info"
            title={`No profile is assigned${set.length > 0 ? "" : `: ${alone}`}`}
          />
        ) : (
          <p>
            {what ?? `${plan.profile} r${plan.revision}`}:{" "}
            {changed.length === 0
              ? "nothing would change."
              : `${counted(changed.length, "value")} would change.`}
          </p>
        )}
        {changed.length > 0 && <PlanItems label="Plan" items={changed} />}
        {set.length > 0 && (
          <>
            <p>Of the next migration alone:</p>
            <PlanItems label="Of the migration" items={set} />
          </>
        )}
        {same.length > 0 && (
          <ExpandableSection
            toggleText={`${same.length} unchanged or unknown`}
            isExpanded={open}
            onToggle={(_event, on) => setOpen(on)}
          >
            {open && <PlanItems label="Unchanged values" items={same} />}
          </ExpandableSection>
        )}
      </StackItem>
      {plan.step_texts.length > 0 && (
        <StackItem>
          <p>Convergence steps:</p>
          <List component="ol" aria-label="Convergence steps">
            {plan.step_texts.map((text) => (
              <ListItem key={text}>{text}</ListItem>
            ))}
          </List>
        </StackItem>
      )}
    </Stack>
  );
}

/** Whether it has no value until a migration is given one, such as the copy of disks. */
function isOfMigration(item: Item): boolean {
  const unset = item.current.value === null && Object.keys(item.current.parts).length === 0;
  return !item.differs && unset && item.takes_effect === "at the next migration";
}

function PlanItems({ label, items }: { label: string; items: readonly Item[] }) {
  return (
    <ListTable
      label={label}
      columns={COLUMNS}
      rows={items}
      name={(item) => item.tunable}
      below="grid-lg"
    />
  );
}
