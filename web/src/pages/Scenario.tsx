import { PageSection, Stack, StackItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { scenario } from "../api/bench";
import type { Schemas } from "../api/client";
import { TunableName } from "../components/labels/TunableName";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { FactList } from "../components/layout/Facts";
import { about } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";
import { flat } from "./bench/flat";
import { RunOnce } from "./bench/RunOnce";
import { Section } from "./bench/Section";

const APART = new Set(["kind", "name", "title", "why", "values", "steps"]);

export default function Scenario() {
  const { family = "", variant = "" } = useParams();
  const name = `${family}/${variant}`;
  const found = useQuery(scenario(family, variant, "direct", ""));
  return (
    <>
      <BenchHead
        title={name}
        trail={[{ to: "/bench/scenarios", text: "Scenarios" }]}
        actions={
          <ButtonLink
            variant="secondary"
            to={`/bench/campaigns/new?scenario=${encodeURIComponent(name)}`}
          >
            Compare arms
          </ButtonLink>
        }
      />
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => (
            <Stack hasGutter>
              {!data.applicable && (
                <StackItem>
                  <Alert
                    isInline
                    variant="warning"
                    title="This scenario cannot run on this machine"
                  >
                    {data.reason}
                  </Alert>
                </StackItem>
              )}
              <StackItem>
                <Section title="Description">
                  <FactList
                    spread
                    facts={[
                      ["Title", data.title || "–"],
                      ["Purpose", data.why || "–"],
                      ["Maximum duration", about(data.longest_s)],
                      [
                        "Measured",
                        <Link key="runs" to={`/bench/runs?scenario=${encodeURIComponent(name)}`}>
                          Runs
                        </Link>,
                      ],
                    ]}
                  />
                </Section>
              </StackItem>
              <StackItem>
                <Tunables scenario={data} />
              </StackItem>
              <StackItem>
                <Section title={data.kind === "migration" ? "VM, workload and limits" : "Setup"}>
                  <FactList spread facts={setup(data)} />
                </Section>
              </StackItem>
              <StackItem>
                <RunOnce scenario={name} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

function Tunables({ scenario: { texts, setup: parts } }: { scenario: Schemas["ScenarioView"] }) {
  const set = Object.entries(texts);
  const steps = (parts.steps as unknown[] | undefined) ?? [];
  return (
    <Section title="Tunables">
      {set.length === 0 ? (
        <p>It sets none: QEMU&apos;s defaults hold.</p>
      ) : (
        <FactList
          spread
          facts={set.map(([name, text]) => [name, text, <TunableName key={name} name={name} />])}
        />
      )}
      {steps.length > 0 && <FactList spread facts={flat(steps, "step")} />}
    </Section>
  );
}

function setup(scenario: Schemas["ScenarioView"]): [string, string][] {
  return flat(
    Object.fromEntries(Object.entries(scenario.setup).filter(([key]) => !APART.has(key))),
  );
}
