import {
  Card,
  CardBody,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core";
import type { CSSProperties, ReactNode } from "react";
import { unbroken } from "../text/format";

/** For lists whose terms are names of tunables, or sentences: beside the text they stay in one line.
 * PatternFly's own property for it works only where the list is never vertical. */
export const WIDE_TERMS = {
  "--pf-v6-c-description-list--m-horizontal__term--width": "32ch",
} as CSSProperties;

/** A term and what is to be said of it; *shown* stands for the term where a word is not enough. */
export type Fact = readonly [term: string, value: ReactNode, shown?: ReactNode];

interface Layout {
  facts: readonly Fact[];
  /** Side by side where there is room. */
  spread?: boolean;
  /** The terms are long. */
  wide?: boolean;
}

/** Facts one below the other. */
export function FactList({ facts, spread = false, wide = false }: Layout) {
  const layout = spread
    ? { columnModifier: { default: "1Col", md: "2Col", xl: "3Col" } as const }
    : {
        orientation: { default: "vertical", sm: "horizontal" } as const,
        ...(wide && { style: WIDE_TERMS }),
      };
  return (
    <DescriptionList isCompact {...layout}>
      {facts.map(([term, value, shown]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{shown ?? term}</DescriptionListTerm>
          <DescriptionListDescription>
            {typeof value === "string" ? unbroken(value) : value}
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

/** A card of facts; *children* stand below them. */
export function Facts({
  title,
  children,
  ...layout
}: Layout & { title: string; children?: ReactNode }) {
  return (
    <Card isFullHeight>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>
        <FactList {...layout} />
        {children}
      </CardBody>
    </Card>
  );
}
