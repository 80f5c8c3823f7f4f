import {
  Card,
  CardBody,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core";
import type { ReactNode } from "react";
import { unbroken } from "../text/format";

/** A term and what is to be said of it; *shown* stands for the term where a word is not enough. */
export type Fact = readonly [term: string, value: ReactNode, shown?: ReactNode];

/** Facts one below the other; side by side where there is room and *spread* is wanted. */
export function FactList({ facts, spread = false }: { facts: readonly Fact[]; spread?: boolean }) {
  const layout = spread
    ? { columnModifier: { default: "1Col", md: "2Col", xl: "3Col" } as const }
    : {
        orientation: { default: "vertical", sm: "horizontal" } as const,
        horizontalTermWidthModifier: { default: "24ch" },
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
  facts,
  spread = false,
  children,
}: {
  title: string;
  facts: readonly Fact[];
  spread?: boolean;
  children?: ReactNode;
}) {
  return (
    <Card isFullHeight>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>
        <FactList facts={facts} spread={spread} />
        {children}
      </CardBody>
    </Card>
  );
}
