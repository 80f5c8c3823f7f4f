import { List, ListItem, PageSection, Stack, StackItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { reference } from "../api/bench";
import type { Schemas } from "../api/client";
import { Async } from "../components/layout/Async";
import { type Fact, FactList } from "../components/layout/Facts";
import { BenchHead } from "./bench/BenchHead";
import { Parts } from "./bench/Parts";
import { ReferenceTable } from "./bench/ReferenceTable";
import { Section } from "./bench/Section";

export default function ReferencePage() {
  const { id = "" } = useParams();
  const found = useQuery(reference(id));
  return (
    <>
      <BenchHead title={id} trail={[{ to: "/bench/reference", text: "Published measurements" }]}>
        {found.data?.title}
      </BenchHead>
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => (
            <Stack hasGutter>
              <StackItem>
                <Section title="Source">
                  <FactList spread facts={source(data.source)} />
                </Section>
              </StackItem>
              <StackItem>
                <Section title="Setup">
                  <FactList spread facts={facts(data.setup)} />
                </Section>
              </StackItem>
              {data.tables.map((table) => (
                <StackItem key={table.name}>
                  <Section title={table.title}>
                    <ReferenceTable table={table} titled />
                  </Section>
                </StackItem>
              ))}
              <StackItem>
                <Section title="Arms">
                  <Parts
                    parts={data.arms.map((arm) => ({ name: arm.name, facts: facts(arm.facts) }))}
                  />
                </Section>
              </StackItem>
              {data.notes.length > 0 && (
                <StackItem>
                  <Section title="Notes">
                    <List>
                      {data.notes.map((each) => (
                        <ListItem key={each}>{each}</ListItem>
                      ))}
                    </List>
                  </Section>
                </StackItem>
              )}
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

function facts(found: readonly Schemas["FactView"][]): Fact[] {
  return found.map((fact) => [fact.title, fact.text] as const);
}

function source(found: Schemas["ReferenceSourceView"]): Fact[] {
  return [
    ["Where", found.place],
    ["Title", found.title],
    ["Author", found.author || "unknown"],
    ["Date", found.date || "unknown"],
    ["Key", found.key],
    [
      "Address",
      found.url ? (
        <a key="url" href={found.url} target="_blank" rel="noreferrer">
          {found.url}
        </a>
      ) : (
        "–"
      ),
    ],
    ["Checked against the original text", found.checked ? "yes" : "no"],
  ];
}
