import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { type Fact, FactList } from "../../components/layout/Facts";
import { ratio } from "../../components/text/measure";
import { Section } from "../bench/Section";
import { foundBy } from "../Studies";
import { type MetricWords, useMetricWords } from "./useMetricWords";

/** What a study found, with the verdicts that it rests on. */
export function Result({
  result,
  kind,
  campaign,
}: {
  result: Schemas["ResultView"];
  kind: Schemas["ScenarioKind"];
  campaign: string | null;
}) {
  const words = useMetricWords(kind);
  const { draft } = result;
  const settings = Object.entries(result.texts).map(([name, text]) => `${name} ${text}`);
  const facts: Fact[] = [
    ["Found", foundBy({ result })],
    ["Why", result.reason],
    ...(settings.length ? [["Settings", settings.join(", ")] as const] : []),
    ...compared(result.evidence, words),
    ...(draft === null
      ? []
      : [
          [
            "Profile",
            <span key="draft">
              <Link to={`/profiles/${encodeURIComponent(draft.profile)}`}>{draft.profile}</Link>,
              assigned to nothing
            </span>,
          ] as const,
        ]),
  ];
  const all = campaign && <Link to={`/bench/campaigns/${campaign}`}>Confirming campaign</Link>;
  return (
    <Section title="Result" actions={all || undefined}>
      <FactList facts={facts} />
    </Section>
  );
}

/** One fact for each pair of a finalist and what it has to beat, with a line for each goal. */
function compared(
  evidence: readonly Schemas["EvidenceView"][],
  words: (name: string) => MetricWords,
): Fact[] {
  const pairs = new Map<string, Schemas["EvidenceView"][]>();
  for (const one of evidence) {
    const pair = `Trial ${one.trial} against ${one.baseline}`;
    pairs.set(pair, [...(pairs.get(pair) ?? []), one]);
  }
  return [...pairs].map(([pair, all]) => [
    pair,
    all.map((one) => <div key={one.metric}>{said(one, words(one.metric))}</div>),
  ]);
}

/** "Total time: inconclusive, +4 % (-27 % to +60 %)" */
function said(one: Schemas["EvidenceView"], { title, said: valued }: MetricWords): string {
  const { estimate, low, high } = one;
  const figure = one.ratio ? ratio : valued;
  const between = low === null || high === null ? "" : ` (${figure(low)} to ${figure(high)})`;
  return `${title}: ${one.verdict}${estimate === null ? "" : `, ${figure(estimate)}${between}`}`;
}
