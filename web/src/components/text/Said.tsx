/** What the service says in words, with `commands` and names in backticks as code. */
import { Fragment } from "react";

/** Within, glibc's assertions quote `like this'. */
const CODE = /`((?:`\w[^`']*'|[^`])+)`/;

export function Said({ children }: { children: string }) {
  // Split at a pattern with one group: what stands between is at the odd places.
  return children.split(CODE).map((part, place) => {
    const key = `${place} ${part}`;
    return place % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
