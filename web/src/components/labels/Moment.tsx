import { Timestamp, TimestampTooltipVariant } from "@patternfly/react-core";
import { moment, utc } from "../text/format";

/** A time in the reader's zone, with UTC on hover; a dash where there is none. */
export function Moment({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return (
    <Timestamp
      date={new Date(at)}
      tooltip={{ variant: TimestampTooltipVariant.custom, content: utc(at) }}
    >
      {moment(at)}
    </Timestamp>
  );
}
