/** What is compared, as it stands in the address. */
import type { Asked } from "../../api/bench";

/** Null where it is not said yet: a campaign alone, or both sides. */
export function asked(search: URLSearchParams): Asked | null {
  const word = (name: string) => search.get(name)?.trim() ?? "";
  const [a, b, campaign, reference] = ["a", "b", "campaign", "reference"].map(word) as [
    string,
    string,
    string,
    string,
  ];
  if (!campaign && !(a && b)) return null;
  const metric = search.getAll("metric").filter(Boolean);
  const expected = search.getAll("expected").filter(Boolean);
  const margin = Number(word("margin"));
  return {
    ...(a ? { a } : {}),
    ...(b ? { b } : {}),
    ...(campaign ? { campaign } : {}),
    ...(metric.length > 0 ? { metric } : {}),
    ...(margin > 0 ? { margin_percent: margin } : {}),
    ...(expected.length > 0 ? { expected } : {}),
    ...(reference ? { reference } : {}),
  };
}
