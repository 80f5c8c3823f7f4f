import { FormSelect, FormSelectOption, List, ListItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { reference, references } from "../../api/bench";
import { Async } from "../../components/layout/Async";
import { ReferenceTable } from "../bench/ReferenceTable";
import { Section } from "../bench/Section";
import type { Pair, Report } from "./pairs";

/** A published source: what it says of the same, and its tables. */
export function Published({
  report,
  pair,
  chosen,
  choose,
}: {
  report: Report;
  pair: Pair;
  chosen: string;
  choose: (reference: string) => void;
}) {
  const list = useQuery(references);
  const told = publishedNotes(report.notes);
  return (
    <Section title="Published measurements">
      <Async query={list} lines={1}>
        {(items) => (
          <FormSelect
            aria-label="Published source"
            value={chosen}
            onChange={(_event, source) => choose(source)}
          >
            <FormSelectOption value="" label="None, or the campaign's own" />
            {items.map((each) => (
              <FormSelectOption key={each.id} value={each.id} label={each.title} />
            ))}
          </FormSelect>
        )}
      </Async>
      {told.length > 0 && (
        <List aria-label="Compared tables">
          {told.map((each) => (
            <ListItem key={each}>{each}</ListItem>
          ))}
        </List>
      )}
      <Tables source={chosen.split("/")[0] || sourceOf(told)} pair={pair} />
    </Section>
  );
}

/** The tables of *source* that share a metric of this comparison. */
function Tables({ source, pair }: { source: string; pair: Pair }) {
  const found = useQuery({ ...reference(source), enabled: source !== "" });
  if (source === "") return null;
  const metrics = new Set(pair.comparisons.map((each) => each.criterion.metric));
  return (
    <Async query={found}>
      {(data) => {
        const tables = data.tables.filter((each) => each.metric && metrics.has(each.metric));
        if (tables.length === 0) {
          return <p>None of its tables has a metric of these runs.</p>;
        }
        return tables.map((table) => <ReferenceTable key={table.name} table={table} />);
      }}
    </Async>
  );
}

const PUBLISHED_IN = /^published in ([^,]+), /;

/** The notes that are about published figures. */
export function publishedNotes(notes: readonly string[]): string[] {
  return notes.filter((each) => PUBLISHED_IN.test(each));
}

function sourceOf(told: readonly string[]): string {
  return PUBLISHED_IN.exec(told[0] ?? "")?.[1] ?? "";
}
