import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core";
import type { ReactNode } from "react";

/** @property shown what stands for the term where a word is not enough. */
export type Fact = readonly [term: string, value: ReactNode, shown?: ReactNode];

/** Facts, a term and a value each. */
export function FactList({ facts }: { facts: readonly Fact[] }) {
  return (
    <DescriptionList columnModifier={{ default: "1Col", md: "2Col", xl: "3Col" }} isCompact>
      {facts.map(([term, value, shown]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{shown ?? term}</DescriptionListTerm>
          <DescriptionListDescription>{value}</DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}
