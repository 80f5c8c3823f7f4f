import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { type Fact, FactList } from "../../components/Facts";
import { number } from "../../components/measure";
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
    ...result.evidence.map(
      (one) =>
        [
          `Trial ${one.trial} against ${one.baseline}`,
          <Evidence key="evidence" one={one} />,
        ] as const,
    ),
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

function Evidence({ one }: { one: Schemas["EvidenceView"] }) {
  const { estimate, low, high, ratio } = one;
  const between = low === null || high === null ? "" : ` (${number(low)} to ${number(high)})`;
  const figure = estimate === null ? "" : `, ${number(estimate)}${ratio ? " times" : ""}${between}`;
  return `${one.metric} ${one.verdict}${figure}`;
}
