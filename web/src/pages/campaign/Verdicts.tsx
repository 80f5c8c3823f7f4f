import { useQuery } from "@tanstack/react-query";
import { comparison } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { Alert } from "../../components/layout/Alert";
import { Async } from "../../components/layout/Async";
import { ButtonLink } from "../../components/layout/ButtonLink";
import { Section } from "../bench/Section";
import { Alone } from "../compare/Alone";
import { PairTable } from "../compare/PairTable";
import { pairsOf } from "../compare/pairs";

/** What an ended campaign says of its primary metric. */
export function Verdicts({ campaign }: { campaign: Schemas["CampaignView"] }) {
  const found = useQuery({
    ...comparison({ campaign: campaign.id, metric: [campaign.primary_metric] }),
    retry: false,
  });
  const to = `/bench/compare?campaign=${campaign.id}`;
  return (
    <Section title="Verdict" actions={<ButtonLink to={to}>Compare all metrics</ButtonLink>}>
      <Async query={found}>
        {(data) => (
          <>
            {data.withheld && (
              <Alert isInline variant="warning" title={`No verdict: ${data.withheld}`} />
            )}
            {campaign.arms.length === 1 ? (
              <Alone report={data} />
            ) : (
              <PairTable
                label="Verdicts"
                report={data}
                pairs={pairsOf(data)}
                linkTo={(pair) => `${to}&pair=${encodeURIComponent(pair.id)}`}
              />
            )}
          </>
        )}
      </Async>
    </Section>
  );
}
