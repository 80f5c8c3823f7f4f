/** The intent of a migration that is not begun: the one that is typed, or else its assignment's, or
 * else its profile's. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { planVm } from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import { explanation, profile } from "../../api/queries";
import { NO_INTENT, type Stated, stated, typedOf } from "../../components/forms/intent";

type What = { destination: string; profile?: string; values: Schemas["PlanCreate"]["values"] };

/** @param follows the name of the profile that it migrates with; empty without one. */
export function useIntent(vm: string, what: What, follows: string) {
  const [typed, setTyped] = useState(NO_INTENT);
  const [asked, setAsked] = useState("");
  const [shadow, setShadow] = useState(false);
  const own = stated(typed);
  const inherited = useInherited(vm, what.profile === undefined, follows);
  const counts = own ?? inherited?.stated ?? null;
  const key = JSON.stringify(counts);
  const judged = useQuery({
    queryKey: ["intent-plan", vm, what, key],
    queryFn: () => planVm(vm, { ...what, intent: { ...counts } }),
    enabled: what.destination !== "" && counts !== null && asked === key,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return {
    typed,
    setTyped,
    shadow: shadow && counts !== null,
    setShadow,
    counts,
    /** In words with where it is from, where it is not the one that is typed. */
    inherited: own === null && inherited !== null ? inherited.words : "",
    found: judged.data?.intent ?? null,
    asking: judged.isFetching,
    error: judged.error,
    problems: judged.error instanceof ApiError ? judged.error.problems : [],
    ask: () => (judged.error ? void judged.refetch() : setAsked(key)),
    take: (nearest: Stated) => {
      const next = typedOf(nearest);
      setTyped(next);
      setAsked(JSON.stringify(stated(next)));
    },
    /** What a migration is ordered with. */
    order: {
      ...(own === null ? {} : { intent: { ...own } }),
      ...(shadow && counts !== null ? { shadow } : {}),
    },
  };
}

/** As the service takes it where none is given: an assignment's intent counts instead of that of its
 * profile, and one that is *assigned* only where no other profile is chosen. */
function useInherited(vm: string, assigned: boolean, follows: string) {
  const why = useQuery({ ...explanation(vm), enabled: assigned });
  const ofProfile = useQuery({ ...profile(follows), enabled: follows !== "" }).data?.intent;
  if (assigned && why.isPending) return null; // the profile's may not count
  const ofAssignment = assigned ? why.data?.winner?.intent : null;
  if (ofAssignment)
    return { stated: ofAssignment.stated, words: `Of its assignment: ${ofAssignment.text}` };
  if (follows === "" || !ofProfile) return null;
  return { stated: ofProfile.stated, words: `Of its profile: ${ofProfile.text}` };
}
