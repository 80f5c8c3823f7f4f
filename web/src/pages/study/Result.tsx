import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { type Fact, FactList } from "../../components/layout/Facts";
import { number } from "../../components/text/measure";
import { Section } from "../bench/Section";
import { foundBy } from "../Studies";

/** What a study found, with the verdicts that it rests on. */
export function Result({
  result,
  campaign,
}: {
  result: Schemas["ResultView"];
  campaign: string | null;
}) {
  const { draft } = result;
  const settings = Object.entries(result.texts).map(([name, text]) => `${name} ${text}`);
  const facts: Fact[] = [
    ["Found", foundBy({ result })],
    ["Why", result.reason],
    ...(settings.length ? [["Settings", settings.join(", ")] as const] : []),
    ...compared(result.evidence),
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
function compared(evidence: readonly Schemas["EvidenceView"][]): Fact[] {
  const pairs = new Map<string, Schemas["EvidenceView"][]>();
  for (const one of evidence) {
    const pair = `Trial ${one.trial} against ${one.baseline}`;
    pairs.set(pair, [...(pairs.get(pair) ?? []), one]);
  }
  return [...pairs].map(([pair, all]) => [
    pair,
    all.map((one) => (
      <div key={one.metric}>
        <Evidence one={one} />
      </div>
    )),
  ]);
}

function Evidence({ one }: { one: Schemas["EvidenceView"] }) {
  const { estimate, low, high, ratio } = one;
  const between = low === null || high === null ? "" : ` (${number(low)} to ${number(high)})`;
  const figure = estimate === null ? "" : `, ${number(estimate)}${ratio ? " times" : ""}${between}`;
  return `${one.metric} ${one.verdict}${figure}`;
}
