import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "react-router";
import { ARRIVES_WITHIN_MS, type Arrival, arriving } from "../../api/arrivals";
import { arrivals } from "../../api/queries";
import { Moment } from "../labels/Moment";
import { TunableName } from "../labels/TunableName";
import { Alert } from "../layout/Alert";
import { useValueText } from "../text/useValueText";

/** The VMs that arrive somewhere now, by migrations that others began. */
export function useArrivals(): readonly Arrival[] {
  const { data: known } = useQuery(arrivals);
  const queries = useQueryClient();
  const oldest = known[0]?.at;
  useEffect(() => {
    if (oldest === undefined) return;
    const forget = () =>
      queries.setQueryData(arrivals.queryKey, (all = []) => arriving(all, Date.now()));
    const timer = setTimeout(forget, Date.parse(oldest) + ARRIVES_WITHIN_MS - Date.now());
    return () => clearTimeout(timer);
  }, [oldest, queries]);
  return known;
}

const WHY_NOT: Readonly<Record<string, string>> = {
  destination_needs_command_line: "the setting destination_command_line does not allow it",
  not_in_every_qemu: "not all QEMUs support it",
};

/** That a VM arrives, and what of its profile it is started with there. */
export function Arriving({
  arrival: { vm, name, source, profile, revision, given, withheld, at },
}: {
  arrival: Arrival;
}) {
  const text = useValueText();
  return (
    <Alert
      isInline
      variant="info"
      title={`${name} is arriving${source ? ` from ${source}` : ""}; vmtune did not start this migration`}
    >
      <p>
        <Link to={`/vms/${vm}`}>{name}</Link>, since <Moment at={at} />, with{" "}
        {profile ? (
          <Link to={`/profiles/${profile}`}>
            {profile} r{revision}
          </Link>
        ) : (
          "no profile"
        )}
      </p>
      {Object.entries(given).map(([tunable, value]) => (
        <p key={tunable}>
          Started there with <TunableName name={tunable} /> {text(tunable, value)}
        </p>
      ))}
      {Object.entries(withheld).map(([tunable, code]) => (
        <p key={tunable}>
          Not with <TunableName name={tunable} />: {WHY_NOT[code] ?? code}
        </p>
      ))}
    </Alert>
  );
}
