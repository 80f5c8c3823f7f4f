import { PageSection, Wizard, WizardStep } from "@patternfly/react-core";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { foreseeCampaign, startCampaign } from "../api/bench";
import { ApiError, type ProblemItem } from "../api/client";
import { useSettled } from "../components/forms/settled";
import { Failure } from "../components/layout/Async";
import { BenchHead } from "./bench/BenchHead";
import { ArmsStep } from "./campaign/ArmsStep";
import {
  asDocument,
  type Draft,
  lacking,
  newDraft,
  type StepId,
  sameArms,
  stepOf,
} from "./campaign/draft";
import { ForecastView } from "./campaign/ForecastView";
import { MeasureStep } from "./campaign/MeasureStep";
import { ReviewStep } from "./campaign/ReviewStep";
import { WhatStep } from "./campaign/WhatStep";

const QUIET_MS = 400;
const NONE: readonly ProblemItem[] = [];

/**
 * PatternFly names the list of steps that narrow screens have "Wizard toggle", whatever it shows:
 * who speaks to the machine could not name it. Without that, it is called what it shows.
 */
function named(place: HTMLDivElement | null): void {
  place?.querySelector(".pf-v6-c-wizard__toggle")?.removeAttribute("aria-label");
}

/** Puts a campaign together; the service judges it and foresees its end as one types. */
export default function CampaignWizard() {
  const [search] = useSearchParams();
  const [draft, setDraft] = useState<Draft>(() => newDraft(search.get("scenario") ?? ""));
  const change = (part: Partial<Draft>) => setDraft((old) => ({ ...old, ...part }));
  const navigate = useNavigate();

  const document = useMemo(() => asDocument(draft), [draft]);
  const settled = useSettled(document, QUIET_MS);
  const missing = lacking(draft);
  const forecast = useQuery({
    queryKey: ["forecast", settled],
    queryFn: () => foreseeCampaign(settled),
    enabled: missing.length === 0,
    retry: false,
    placeholderData: keepPreviousData,
  });
  const start = useMutation({
    mutationFn: () => startCampaign(document),
    onSuccess: (made) => navigate(`/bench/campaigns/${made.id}`),
  });

  const answered = forecast.error instanceof ApiError ? forecast.error.problems : NONE;
  const [held, setHeld] = useState<readonly ProblemItem[]>(NONE);
  // While the service judges anew, what it said before stays: messages that come and go flicker.
  useEffect(() => {
    if (!forecast.isFetching) setHeld(answered);
  }, [forecast.isFetching, answered]);
  const judged = forecast.isFetching ? held : answered;
  const problems: readonly ProblemItem[] = missing.length > 0 ? missing : judged;
  const stands = (step: StepId) => problems.filter((each) => stepOf(each) === step);
  const blocked = (step: StepId) => stands(step).length > 0;
  const unsettled = settled !== document || forecast.isFetching;
  const ready = missing.length === 0 && forecast.data !== undefined && !forecast.error;
  const told = missing.length === 0 && forecast.data && !forecast.error && (
    <ForecastView forecast={forecast.data.forecast} />
  );
  // What is no problem of a field (the service is down, an arm is blocked) is told everywhere.
  const failed = missing.length === 0 &&
    forecast.error &&
    (judged.length === 0 || judged.some((each) => stepOf(each) === "review")) && (
      <Failure error={forecast.error} again={() => void forecast.refetch()} inline />
    );
  return (
    <>
      <BenchHead title="New campaign" trail={[{ to: "/bench/campaigns", text: "Campaigns" }]} />
      <PageSection>
        <div ref={named}>
          <Wizard
            navAriaLabel="Steps of a new campaign"
            isVisitRequired
            onClose={() => navigate("/bench/campaigns")}
            onSave={() => start.mutate()}
          >
            <WizardStep id="what" name="Scenario" footer={{ isNextDisabled: blocked("what") }}>
              <WhatStep draft={draft} problems={stands("what")} change={change} />
            </WizardStep>
            <WizardStep id="arms" name="Arms" footer={{ isNextDisabled: blocked("arms") }}>
              <ArmsStep
                arms={draft.arms}
                same={sameArms(draft)}
                problems={stands("arms")}
                change={(arms) => change({ arms })}
              />
            </WizardStep>
            <WizardStep
              id="measure"
              name="Blocks and verdict"
              footer={{ isNextDisabled: blocked("measure") }}
            >
              <MeasureStep draft={draft} problems={stands("measure")} change={change} />
              {told}
              {failed}
            </WizardStep>
            <WizardStep
              id="review"
              name="Review"
              footer={{
                nextButtonText: "Start campaign",
                isNextDisabled: !ready || unsettled || start.isPending,
              }}
            >
              <ReviewStep draft={draft} problems={problems} />
              {told}
              {failed}
              {start.error && <Failure error={start.error} inline />}
            </WizardStep>
          </Wizard>
        </div>
      </PageSection>
    </>
  );
}
