import { Popover } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";

/** A metric's title; asked for, it tells what it measures. */
export function MetricName({
  title,
  measures,
  better,
}: {
  title: string;
  measures: string;
  better: Schemas["Direction"];
}) {
  return (
    <Popover
      headerContent={title}
      bodyContent={
        <>
          <p>{measures}</p>
          <p>{better === "none" ? "It explains other metrics." : `${better} is better.`}</p>
        </>
      }
    >
      <button type="button" className="pf-v6-c-button pf-m-link pf-m-inline">
        {title}
      </button>
    </Popover>
  );
}
